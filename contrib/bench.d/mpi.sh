# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154,SC2178 # variables of contrib/bench
#
# Measures Open MPI over each of mpi_configs. Sourced by contrib/bench, after
# run.sh.

mpi_limit=60	# limit of one job, s
mpi_default_tests=lat,cold,rate,bibw,alltoallw,alltoall,allgather,allreduce
mpi_default_tests+=,reduce_scatter,sendrecv,exchange,halo,bcast,barrier,threads

# mpi_defaults: sets the options that the user did not give
mpi_defaults()
{
	local cpus
	cpus=$(nproc)
	mpi_tests=${mpi_tests:-$mpi_default_tests}
	[[ -z $mpi_ranks && -z $mpi_init ]] || return 0
	mpi_ranks=2
	if [[ -z $quick && $cpus -gt 2 ]]; then
		mpi_ranks=2,$cpus,$((4 * cpus))
		mpi_init=$((2 * cpus)),$((8 * cpus))
	elif [[ -z $quick ]]; then
		mpi_ranks=2,12 mpi_init=8
	fi
}

# mpi_cpus COUNT: prints COUNT of the available CPUs, for taskset: first one hardware
# thread of each physical core, then the others
mpi_cpus()
{
	local range cpu first sys=/sys/devices/system/cpu
	for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
		seq "${range%-*}" "${range#*-}"
	done | while read -r cpu; do
		first=$(sed 's/[-,].*//' 2>/dev/null \
			"$sys/cpu$cpu/topology/thread_siblings_list")
		echo "$((${first:-$cpu} != cpu)) $cpu"
	done | sort -n | head -n "$1" | cut -d' ' -f2 | paste -sd ,
}

# mpi_sum FIELD: prints the sum of a statistic in $work/err
mpi_sum()
{
	{ grep -ao " $1=[0-9]*" "$work/err" || true; } |
		awk -F= '{ sum += $2 } END { print sum + 0 }'
}

# wrong_osc_path: prints a message if an RMA operation used the core, or if no RMA
# operation used near
wrong_osc_path()
{
	if [[ $(mpi_sum local_rma_ops) -eq 0 ||
		$(mpi_sum core_rma_ops) -ne 0 ]]; then
		echo "wrong path: $(mpi_sum local_rma_ops) RMA operations over" \
			"near, $(mpi_sum core_rma_ops) over the core"
	fi
}

# wrong_mpi_path CONFIG RANKS: prints a message if the statistics of ofi_duo or of
# the software device show that messages used another path than that of CONFIG. ob1
# and ucx need no check: in these configurations Open MPI has no other transport.
wrong_mpi_path()
{
	local lines packets
	if [[ $1 == osc-duo-* ]]; then
		wrong_osc_path
	elif [[ $1 == duo-* || $1 == hook-* ]]; then
		lines=$(grep -ac 'ofi_duo stats:' "$work/err" || true)
		if [[ $lines -ne $2 ]]; then
			echo "$lines of $2 ranks have statistics of ofi_duo"
		elif [[ $(mpi_sum core_tx_msgs) -ne 0 ]]; then
			echo "wrong path: $(mpi_sum core_tx_msgs) messages over" \
				"the core, $(mpi_sum local_tx_msgs) over the local path"
		fi
	elif [[ $1 == efa* ]] && ! softefa_real; then
		packets=$(mpi_sum tx_pkts)
		if [[ $1 == efa && $packets -lt $2 ]]; then
			echo "wrong path: the device has sent $packets packets"
		elif [[ $1 == efa-shm && $packets -gt 0 ]]; then
			echo "wrong path: the device has sent $packets packets"
		fi
	fi
}

# mpi_one ROUND CONFIG RANKS TESTS: runs one job; RANKS as in --mpi-ranks
mpi_one()
{
	local round=$1 config=$2 n=${3%/*} tests=$4 status=0 device
	local name="$tests with $3 ranks" slots budget=10 wrong=''
	local -a vars command
	local allocated=''
	# osc/sm supports only windows that MPI allocates
	[[ $config != osc-sm ]] || allocated=1
	[[ ${failures[mpi-$config $name]:-0} -lt 2 ]] || return 0
	mpi_config_of "$config" || die "cannot measure MPI over $config" \
		"no such" "see contrib/bench.d/configs.sh"
	if [[ -n $device ]] && ! softefa_real; then
		vars+=("LD_PRELOAD=$softefa_lib" SOFTEFA_STATS=1
			"SOFTEFA_REORDER=${SOFTEFA_REORDER:-0}")
	fi
	slots=$(nproc)
	command=()
	if [[ $3 == */* ]]; then
		slots=${3#*/}
		command+=(taskset -c "$(mpi_cpus "$slots")")
	fi
	# Ranks that share CPUs need more time, because a time slice of a CPU is
	# longer than the latency of a message.
	[[ $n -le $slots ]] || budget=30
	[[ -z $quick ]] || budget=$((budget / 5))
	# With :OVERSUBSCRIBE Open MPI assumes oversubscribed CPUs, so that
	# waiting ranks yield.
	command+=(env "${mpi_vars[@]}" "${vars[@]}" "${mpirun[@]}"
		--host "localhost:$slots" --map-by :OVERSUBSCRIBE
		--bind-to none -n "$n" "${runner[@]}" "$mpibench"
		-l "$3" -t "$tests" ${quick:+-q} ${allocated:+-w} ${mpi_sizes:+-s "$mpi_sizes"}
		-b "${mpi_ms:-$budget}")
	with_limit "$mpi_limit" "${command[@]}" >"$work/out" 2>"$work/err" </dev/null || status=$?
	case $status in
	0) wrong=$(wrong_mpi_path "$config" "$n");;
	124) wrong="not done after $mpi_limit s";;
	esac
	[[ -z $wrong ]] || echo "!$wrong" >>"$work/out"
	keep "$round" "mpi-$config" "$name" "$status"
}

# mpi_round ROUND: runs all configurations, with each number of ranks. The test
# "threads" runs in a separate job with two ranks, because it initializes MPI
# for several threads, and pins threads instead of ranks.
mpi_round()
{
	local n config tests=",$mpi_tests," threads=''
	local -a ordered
	if [[ $tests == *,threads,* ]]; then
		threads=1 tests=${tests/,threads,/,}
	fi
	tests=${tests#,} tests=${tests%,}
	for n in ${mpi_ranks//,/ } ${mpi_init//,/ }; do
		in_order mpi- "${mpi_configs[@]}"
		for config in "${ordered[@]}"; do
			if [[ ,$mpi_ranks, == *,$n,* ]]; then
				[[ -z $tests ]] ||
					mpi_one "$1" "$config" "$n" "$tests"
				[[ -z $threads || $n != 2 ]] ||
					mpi_one "$1" "$config" 2 threads
			else
				mpi_one "$1" "$config" "$n" init
			fi
		done
	done
}

# Measures RMA between two ranks.
run_osc()
{
	local round config
	local -a ordered
	if [[ -z $mpibench ]]; then
		no_value mpi osc "no Open MPI here"
		return
	fi
	for ((round = 1; round <= mpi_rounds; round++)); do
		time_left "$round" || break
		in_order mpi- "${osc_configs[@]}"
		for config in "${ordered[@]}"; do
			mpi_one "$round" "$config" 2 put,get,fop
		done
	done
}

run_mpi()
{
	local round
	if [[ -z $mpibench ]]; then
		no_value mpi mpi "no Open MPI here"
		return
	fi
	mpi_defaults
	for ((round = 1; round <= mpi_rounds; round++)); do
		time_left "$round" || break
		mpi_round "$round"
	done
}
