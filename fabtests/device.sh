# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154,SC2034 # src, failed: run
#
# Functions of fabtests/run for the software EFA device: its use below a
# command, and its counters. Sourced by fabtests/run.

. "$src/contrib/lib/softefa.sh"
declare -A counted=()

# has_provider NAME: true if libfabric has the provider
has_provider()
{
	[[ -n ${providers:-} ]] || providers=" $(fi_info -l | sed -n 's/:$//p' |
		tr '\n' ' ')"
	[[ $providers == *" $1 "* ]]
}

# softefa_for CORE: prints the command prefix that runs a command on the
# software EFA device; false if the core does not need the device
softefa_for()
{
	[[ $1 == efa && ${SOFTEFA:-} != 0 ]] || return
	[[ ${LD_PRELOAD:-} != *libsoftefa* ]] || return
	! softefa_real || return
	echo "$src/contrib/softefa/softefa"
}

# count_device LOG: LOG has the counters of the device's queue pairs; adds these
# counters to the totals
count_device()
{
	local name value
	while read -r name value; do
		counted[$name]=$((${counted[$name]:-0} + value))
	done < <(awk '/^softefa stats:/ {
			for (i = 3; i <= NF; i++) {
				split($i, word, "=")
				sum[word[1]] += word[2]
			}
		} END { for (name in sum) print name, sum[name] }' "$1")
}

# counts_wanted: prints "COUNTER" for each counter that must not be 0, and
# "!COUNTER" for each that must be 0, by the device's configuration in the
# environment
counts_wanted()
{
	[[ ${SOFTEFA_LOSS:-} != *[1-9]* ]] || echo lost retrans
	[[ ${SOFTEFA_REORDER:-} != *[1-9]* ]] || echo late
	[[ ${SOFTEFA_DUP:-} != *[1-9]* ]] || echo dup
	[[ ${SOFTEFA_RNR:-} != *[1-9]* ]] || echo rnr
	[[ ${SOFTEFA_ERROR:-} != *[1-9]* ]] || echo errors
	if [[ ${SOFTEFA_RDMA:-} == 0 ]]; then
		echo '!rdma'
	elif [[ ${FI_EFA_USE_DEVICE_RDMA:-} == 1 ]]; then
		echo rdma
	fi
}

# device_told WIRE: prints a PASS line if the totals are as counts_wanted requires,
# otherwise a FAIL line; no line if counts_wanted requires nothing
device_told()
{
	local name counts='' status=PASS
	for name in $(counts_wanted); do
		counts+=", ${name#!} ${counted[${name#!}]:-none}"
		if [[ $name == '!'* ]]; then
			[[ ${counted[${name#!}]:-1} -eq 0 ]] || status=FAIL
		else
			[[ ${counted[$name]:-0} -gt 0 ]] || status=FAIL
		fi
	done
	[[ -n $counts ]] || return 0
	echo "$status: efa/$1 counted ${counts#, }"
	[[ $status == PASS ]] || failed=1
}
