# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Open MPI on a libfabric provider. Sourced after common.sh.

# mpi_build: compiles demo_mpi.c into the build tree, when it is newer.
mpi_build()
{
	local program=$duo_build/contrib/demo_mpi
	local source=$duo_src/contrib/demo_mpi.c
	[[ ! $program -nt $source ]] || return 0
	mpicc -O2 -Wall -Wextra -Wno-cast-function-type \
		-o "$program.$$" "$source" &&
		mv "$program.$$" "$program"
}

# mpi_run PROVIDER LAYOUT PROGRAM...: LAYOUT is a number of ranks on this host,
# or HxR: R ranks on each of H hosts. duo_mpi_onesided gets osc/rdma over
# btl/ofi; pml must not be named then, or Open MPI (5.0) starts no btl.
mpi_run()
{
	local provider=$1 layout=$2 i hosts=()
	local -a run=(mpirun --bind-to none --mca mtl ofi
		--mca mtl_ofi_provider_include "$provider")
	shift 2
	if [[ ${1##*/} == duo_mpi_onesided ]]; then
		run+=(--mca osc rdma --mca btl 'self,ofi')
	else
		run+=(--mca pml cm --mca btl '^ofi')
	fi
	if [[ $provider == efa* && ${LD_PRELOAD:-} != *libsoftefa* ]]; then
		run=("$duo_src/contrib/softefa/softefa" "${run[@]}")
	fi
	export FI_PROVIDER=$provider FI_OFI_DUO_STATS=1
	if [[ $layout != *x* ]]; then
		# More ranks than cores is what small machines have.
		"${run[@]}" --host "localhost:$layout" -n "$layout" "$@"
		return
	fi
	for ((i = 1; i <= ${layout%x*}; i++)); do
		hosts+=("h$i:${layout#*x}")
	done
	"$duo_src/contrib/hosts" "${#hosts[@]}" "${run[@]}" \
		--host "$(IFS=,; echo "${hosts[*]}")" "$@"
}

# stats_sum LOG FIELD: over all endpoints that LOG has a line of.
stats_sum()
{
	grep -a 'ofi_duo stats:' "$1" |
		grep -o " $2=[0-9]*" | awk -F= '{ n += $2 } END { print n + 0 }'
}

# mpi_onesided_right LOG: RMA and atomics went through ofi_duo, and with
# near some of each over it: two ranks share a host in any layout.
mpi_onesided_right()
{
	local rma atomic
	rma=$(($(stats_sum "$1" core_rma_ops) + $(stats_sum "$1" local_rma_ops)))
	atomic=$(($(stats_sum "$1" core_atomic_ops) +
		$(stats_sum "$1" local_atomic_ops)))
	if [[ ${FI_OFI_DUO_PEER:-near} == near ]]; then
		rma=$(stats_sum "$1" local_rma_ops)
		atomic=$(stats_sum "$1" local_atomic_ops)
	fi
	[[ $rma -gt 0 && $atomic -gt 0 ]] && return
	echo "no RMA, or no atomics, of ofi_duo" >>"$1"
	return 1
}

# mpi_paths_right LAYOUT LOG: on one host no message went over the core; on
# several, both paths carried messages.
mpi_paths_right()
{
	local shm core
	shm=$(stats_sum "$2" local_tx_msgs)
	core=$(stats_sum "$2" core_tx_msgs)
	echo "$shm messages over shm, $core over the core" >>"$2"
	if [[ $1 == *x* ]]; then
		[[ $shm -gt 0 && $core -gt 0 ]]
	else
		[[ $shm -gt 0 && $core -eq 0 ]]
	fi
}
