# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # work: the script that sources this
#
# Steps of a check that install files, in throwaway copies of a root. Sourced
# after common.sh by scripts with a directory $work.

# step NAME COMMAND...: runs COMMAND; prints PASS, or the end of its output and
# FAIL, and sets failed
step()
{
	local name=${0##*/check-}:\ $1 log=$work/log
	shift
	if ("$@") >"$log" 2>&1 </dev/null; then
		echo "PASS: $name"
	else
		tail -n 40 "$log" | sed 's/^/  | /'
		echo "FAIL: $name"
		# shellcheck disable=SC2034 # the callers use it
		failed=1
		return 1
	fi
}

# live_root DIRECTORY [LOWER]: mounts a copy of this root (or of LOWER) at
# DIRECTORY/root. The caller must be in a mount namespace of its own: no other
# process sees the installed files, and they vanish with the namespace.
# DIRECTORY/upper has the changes of the copy.
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
