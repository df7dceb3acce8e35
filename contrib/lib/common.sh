# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash
#
# Functions and paths that all scripts of contrib/ use.

# With CDPATH, cd of a relative path prints a line, and may enter another directory.
unset CDPATH
# Tools print English words, numbers with a decimal point, and lines in the order of
# their bytes; commands of contrib/env, too.
export LC_ALL=C
# Open MPI does not start without HOME.
export HOME=${HOME:-/}

# Source tree (physical path), and build tree of contrib/env.
duo_src=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
duo_build=${OFI_DUO_BUILD:-$duo_src/build}
[[ $duo_build == /* ]] || duo_build=$PWD/$duo_build

# Longest duration of a test, s: so long that only a test that hangs reaches it. A
# test of 2 s of CPU time took 4 minutes when 20 processes shared each CPU.
# shellcheck disable=SC2034 # other scripts read it
hang_s=1800

# say TEXT: prints a line of progress on stderr, because stdout is for the
# command's output
say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die OBJECT CAUSE REMEDY: prints the three in one line; exits with status 1
die()
{
	say "$1: $2; $3"
	exit 1
}

# usage: prints the comment at the head of the script
usage()
{
	sed -n '5,/^$/{/^# shellcheck/d; s/^# \{0,1\}//p}' "$0"
}

# help_wanted ARGUMENT: if ARGUMENT requests help, prints the usage and exits
# with status 0
help_wanted()
{
	case ${1:-} in
	-h|--help)
		usage
		exit 0;;
	esac
}

# tcp_core: prints the name of the core over TCP that ofi_duo can use: tcp since
# libfabric 2.0, with older versions "tcp;ofi_rxm"
tcp_core()
{
	if pkg-config --atleast-version=2.0 libfabric; then
		echo tcp
	else
		echo "tcp;ofi_rxm"
	fi
}

is_root()
{
	[[ $(id -u) -eq 0 ]]
}

# as_nobody COMMAND...: runs COMMAND as the user nobody. This fails for root of a user
# namespace that maps only one user, as when an ordinary user enters a Debian
# root.
as_nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

may_be_nobody()
{
	is_root && as_nobody true 2>/dev/null
}

# True if this process may create namespaces with a new /proc. In most containers root
# may not. An ordinary user may, in a user namespace of its own, unless a part of /proc
# is hidden, as in rootless containers: the kernel then permits no new /proc.
may_unshare()
{
	unshare --pid --fork --mount --mount-proc --net --uts -- true 2>/dev/null
}

may_unshare_as_user()
{
	unshare --map-root-user --pid --fork --mount --mount-proc --net --uts -- \
		mount -t tmpfs none /mnt 2>/dev/null
}

# with_limit SECONDS COMMAND...: runs COMMAND for at most SECONDS; exit status as timeout's.
# A signal to the shell that calls this function, which may be a subshell, ends COMMAND
# and then that shell. Without the traps, Ctrl-C would not reach COMMAND, because
# timeout makes a process group for it, and bash would wait until COMMAND ends.
with_limit()
{
	local signal status=0
	timeout -k 5 "$@" <&0 &
	for signal in HUP INT TERM; do
		# shellcheck disable=SC2064 # expanded now
		trap "kill $! 2>/dev/null; trap - $signal; kill -$signal \$BASHPID" "$signal"
	done
	wait $! || status=$?
	trap - HUP INT TERM
	return "$status"
}

# logged STEP LOG REMEDY COMMAND...: runs COMMAND with its output in LOG. If it
# fails, prints the end of LOG and a line with STEP and REMEDY.
logged()
{
	local step=$1 log=$2 remedy=$3
	shift 3
	"$@" >>"$log" 2>&1 </dev/null && return 0
	local status=$?
	tail -n 25 "$log" >&2
	say "$step failed: '$1' exited with $status, see $log; $remedy"
	return 1
}
