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
# or HxR: R ranks on each of H hosts.
mpi_run()
{
	local provider=$1 layout=$2 i hosts=()
	local -a run=(mpirun --bind-to none --mca pml cm --mca mtl ofi
		--mca btl '^ofi' --mca mtl_ofi_provider_include "$provider")
	shift 2
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

# mpi_paths_right LAYOUT LOG: on one host nothing went over the core; on
# several, both paths carried messages.
mpi_paths_right()
{
	local shm core
	shm=$(stats_sum "$2" shm_tx_msgs)
	core=$(stats_sum "$2" core_tx_msgs)
	echo "$shm messages over shm, $core over the core" >>"$2"
	if [[ $1 == *x* ]]; then
		[[ $shm -gt 0 && $core -gt 0 ]]
	else
		[[ $shm -gt 0 && $core -eq 0 ]]
	fi
}
