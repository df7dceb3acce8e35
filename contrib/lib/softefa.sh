# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Decides whether a command needs the software EFA device. Sourced after
# common.sh.

# softefa_real: true if this machine has a real EFA device
softefa_real()
{
	local driver
	for driver in /sys/class/infiniband/*/device/driver; do
		[[ $(readlink "$driver") != */efa ]] || return 0
	done
	return 1
}

# softefa_wanted COMMAND...: true if FI_PROVIDER or COMMAND contains the word efa and
# there is no real device. SOFTEFA=1 and SOFTEFA=0 override this. False for scripts of
# contrib/, which start the software device themselves for commands that need it.
softefa_wanted()
{
	case ${SOFTEFA:-} in
	1) return 0;;
	0) return 1;;
	esac
	case $1 in
	*/fabtests/run|*/contrib/bench|*/contrib/check|*/contrib/demo)
		return 1;;
	esac
	[[ ${LD_PRELOAD:-} != *libsoftefa* ]] || return
	[[ " ${FI_PROVIDER:-} $* " =~ [^[:alnum:]_./-]efa[^[:alnum:]_./] ]] &&
		! softefa_real
}
