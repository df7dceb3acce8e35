# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Runs Open MPI on a libfabric provider. Sourced after common.sh.

# mpi_build: compiles demo_mpi.c into the build tree, if the source is newer
mpi_build()
{
	local program=$duo_build/contrib/demo_mpi
	local source=$duo_src/contrib/demo_mpi.c
	[[ ! $program -nt $source ]] || return 0
	mpicc -O2 -Wall -Wextra -Wno-cast-function-type \
		-o "$program.$$" "$source" &&
		mv "$program.$$" "$program"
}

# mpi_is_onesided PROGRAM: true if the program uses windows (RMA)
mpi_is_onesided()
{
	[[ ${1##*/} == duo_mpi_@(onesided|attach) ]]
}

# mpi_run PROVIDER LAYOUT PROGRAM...: runs the program. LAYOUT is a number of
# ranks on this host, or HxR: R ranks on each of H hosts. RMA programs use
# osc/rdma over btl/ofi. For RMA programs no pml is selected: with a selected pml
# Open MPI 5.0 starts no btl.
mpi_run()
{
	local provider=$1 layout=$2 i hosts=()
	local -a run=(mpirun --bind-to none --mca mtl ofi
		--mca mtl_ofi_provider_include "$provider")
	shift 2
	if mpi_is_onesided "$1"; then
		run+=(--mca osc rdma --mca btl 'self,ofi')
	else
		run+=(--mca pml cm --mca btl '^ofi')
	fi
	if [[ $provider == efa* && ${LD_PRELOAD:-} != *libsoftefa* ]]; then
		run=("$duo_src/contrib/softefa/softefa" "${run[@]}")
	fi
	export FI_PROVIDER=$provider FI_OFI_DUO_STATS=1
	if [[ $layout != *x* ]]; then
		# Requests the slots, because small hosts have fewer CPUs than ranks.
		"${run[@]}" --host "localhost:$layout" -n "$layout" "$@"
		return
	fi
	for ((i = 1; i <= ${layout%x*}; i++)); do
		hosts+=("h$i:${layout#*x}")
	done
	"$duo_src/contrib/hosts" "${#hosts[@]}" "${run[@]}" \
		--host "$(IFS=,; echo "${hosts[*]}")" "$@"
}

# stats_sum LOG FIELD: prints the sum of a statistic over all endpoints in LOG
stats_sum()
{
	grep -a 'ofi_duo stats:' "$1" |
		grep -o " $2=[0-9]*" | awk -F= '{ n += $2 } END { print n + 0 }'
}

# mpi_onesided_right PROGRAM LOG: true if ofi_duo has executed RMA and atomics. If near
# is the local transport, near must have executed at least one of each: in any layout
# two ranks share a host. For duo_mpi_attach, atomics are not checked: if all ranks are
# on one host, Open MPI uses none for windows of attached memory.
mpi_onesided_right()
{
	local path sum kind
	local -a kinds=(rma atomic) paths=(core local)
	[[ ${1##*/} != duo_mpi_attach ]] || kinds=(rma)
	[[ ${FI_OFI_DUO_LOCAL:-near} != near ]] || paths=(local)
	for kind in "${kinds[@]}"; do
		sum=0
		for path in "${paths[@]}"; do
			sum=$((sum + $(stats_sum "$2" "${path}_${kind}_ops")))
		done
		[[ $sum -eq 0 ]] || continue
		echo "no $kind operation of ofi_duo" >>"$2"
		return 1
	done
}

# mpi_paths_right LAYOUT LOG: true if messages used the expected paths: on one
# host the core carries none, on several hosts both paths carry some
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
