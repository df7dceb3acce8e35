# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # work: those who source this
#
# Steps of a check that install things, in throwaway copies of a root. Sourced
# after common.sh by what has a directory $work.

# step NAME COMMAND...: PASS or, with the end of what it said, FAIL. Sets
# failed.
step()
{
	local name=${0##*/check-}:\ $1 log=$work/log
	shift
	if ("$@") >"$log" 2>&1 </dev/null; then
		echo "PASS: $name"
	else
		tail -n 40 "$log" | sed 's/^/  | /'
		echo "FAIL: $name"
		# shellcheck disable=SC2034 # theirs
		failed=1
		return 1
	fi
}

# live_root DIRECTORY [LOWER]: in a mount namespace of its own. A root like this
# one (or LOWER), on DIRECTORY/root, where what is installed is seen by nobody
# and goes with it. What has changed lies in DIRECTORY/upper.
live_root()
{
	local root=$1/root lower=${2:-/} dir
	mkdir -p "$1"
	mount -t tmpfs ofi_duo-live "$1"
	mkdir "$1"/{upper,work,root}
	mount -t overlay ofi_duo-live \
		-o "lowerdir=$lower,upperdir=$1/upper,workdir=$1/work" "$root"
	for dir in /dev /proc /sys /tmp; do
		mount --rbind "$dir" "$root$dir"
	done
	[[ $work == /tmp/* ]] || {
		mkdir -p "$root$work"
		mount --bind "$work" "$root$work"
	}
}
