#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
#
# duo_test.sh [CORE]: two processes of this host exchange messages by
# fi_pingpong over "CORE;ofi_duo". Each message must use shared memory.
# Last line: PASS, or the fault. CORE: efa if there is a device, otherwise
# tcp. Exit status: 0 PASS, 1 FAIL, 77 the test is not possible here.

set -eu

lib=$(readlink -f "$0")
prefix=${lib%/bin/*} lib=${lib%/bin/*}/lib/ofi_duo
# shellcheck source=common.sh
. "$lib/common.sh"
# shellcheck source=pingpong.sh
. "$lib/pingpong.sh"

cannot()
{
	echo "NOT TESTED: $*"
	exit 77
}

fail()
{
	sed 's/^/  /' "$dir"/* >&2
	echo "FAIL: $*"
	exit 1
}

# core_here: prints the default core. As libfabric does, it recognizes an EFA
# device by its kernel driver.
core_here()
{
	for driver in /sys/class/infiniband/*/device/driver; do
		case $(readlink "$driver" || true) in
		*/efa) echo efa; return;;
		esac
	done
	case $version in
	1.*) echo "tcp;ofi_rxm";;	# tcp of 1.x lacks features without ofi_rxm
	*) echo tcp;;
	esac
}

case ${1:-} in
-h|--help) usage; exit;;
-*) die "not tested" "'$1' is no option" "see duo_test.sh --help";;
esac

found=$(libfabric_found "$lib") || cannot "$found"
version=${found%% *} path=${found#* }
modules=$(modules_for "$lib" "$version") || cannot "no module for libfabric" \
	"$version ($path), only for $(modules_in "$lib")"
# If the user has selected a libfabric with ofi_duo-select, the test uses that one,
# even if the loader finds another one.
if [ -e "$lib/chosen" ]; then
	LD_LIBRARY_PATH=${path%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
fi
# the programs of this libfabric: PREFIX/bin, for PREFIX/lib*/.../libfabric.so
PATH=${path%/lib*/libfabric*}/bin:$PATH
program=$(command -v fi_pingpong) ||
	cannot "fi_pingpong is missing; install libfabric's programs" \
		"(Debian: libfabric-bin)"
core=${1:-$(core_here)}
provider="$core;ofi_duo" near=
if [ ! -e "$modules/libduo-fi.so" ]; then
	provider=near near=1
fi

server='' client='' dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# After a signal, dash runs the EXIT trap only if a trap for the signal calls
# exit.
trap 'pingpong_end; exit 1' HUP INT TERM
unset FI_PROVIDER
export FI_OFI_DUO_STATS=1 FI_LOG_LEVEL=warn FI_LOG_PROV=ofi_duo,near
FI_PROVIDER_PATH=$("$prefix/bin/ofi_duo-select" --print)
export FI_PROVIDER_PATH
pingpong "$dir" "$provider" "$program" || fail "fi_pingpong -p \"$provider\" exited with $?; see above. \
fi_duo_info says what this host lacks"
if [ -z "$near" ]; then
	wrong=$(pingpong_local "$dir") || fail "$wrong; run fi_duo_info for the reason"
fi
echo "PASS: fi_pingpong -p \"$provider\", libfabric $version ($path)"
