# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash
#
# What every script of contrib/ starts with: where things are, how to speak.

# The source tree (physical path), and the build tree that contrib/env keeps.
duo_src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
duo_build=${OFI_DUO_BUILD:-$duo_src/build}
[[ $duo_build == /* ]] || duo_build=$PWD/$duo_build

# say TEXT: one line of progress, on stderr (stdout is the command's).
say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# die WHAT CAUSE REMEDY: one line, exit 1.
die()
{
	say "$1: $2; $3"
	exit 1
}

# usage: the comment at the head of the script.
usage()
{
	sed -n '5,/^$/{/^# shellcheck/d; s/^# \{0,1\}//p}' "$0"
}

# help_wanted ARGUMENT: if it asks for it, prints the usage and ends, status 0.
help_wanted()
{
	case ${1:-} in
	-h|--help)
		usage
		exit 0;;
	esac
}

# tcp_core: the core over TCP that has what ofi_duo needs: only with libfabric 2.0
# did tcp get it without ofi_rxm.
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

# as_nobody COMMAND...: as a user without rights. Root of a user namespace that has one
# user, as ordinary users make it to work in a Debian root, cannot do that.
as_nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

may_be_nobody()
{
	is_root && as_nobody true 2>/dev/null
}

# Uid 0 does not say that there may be namespaces: in most containers there may
# not. Elsewhere any user may have them in a user namespace of its own, but not with
# their /proc where a part of /proc is hidden, as in containers without root.
may_unshare()
{
	unshare --pid --fork --mount --mount-proc --net --uts -- true 2>/dev/null
}

may_unshare_as_user()
{
	unshare --map-root-user --pid --fork --mount --mount-proc --net --uts -- \
		mount -t tmpfs none /mnt 2>/dev/null
}

# logged WHAT LOG REMEDY COMMAND...: runs COMMAND quietly; when it fails,
# shows the end of LOG and one line about it.
logged()
{
	local what=$1 log=$2 remedy=$3
	shift 3
	"$@" >>"$log" 2>&1 </dev/null && return 0
	local status=$?
	tail -n 25 "$log" >&2
	say "$what failed: '$1' exited with $status, see $log; $remedy"
	return 1
}
