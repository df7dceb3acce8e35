# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # variables of contrib/bench
#
# Runs the programs, round by round, and writes lines with tabs to one raw file:
#   M KEY VALUE                     about this run
#   V ROUND CONFIG METRIC VALUE HOP HOP     measured; round trips of a cache line
#                                   (ns) before and after
#   N CONFIG TESTS REASON           not measured
# Sourced by contrib/bench.

# "CONFIG TESTS" -> number of failures. After two failures these tests do not run
# in later rounds.
declare -A failures

# command_of: sets $command to the program with the variables and arguments that
# config_of has set
command_of()
{
	command=(env "${vars[@]}")
	if [[ -n $device ]] && ! softefa_real; then
		command+=("LD_PRELOAD=$softefa_lib" SOFTEFA_STATS=1
			"SOFTEFA_REORDER=${SOFTEFA_REORDER:-0}")
	fi
	command+=("${runner[@]}" "$duobench" -p "$prov" "${args[@]}")
}

# no_value CONFIG TESTS REASON: records that the tests were not measured
no_value()
{
	failures[$1 $2]=$((${failures[$1 $2]:-0} + 1))
	printf 'N\t%s\t%s\t%s\n' "$1" "$2" "$3" >>"$raw"
}

# wrong_device_path CONFIG TESTS: true if the statistics of the software EFA device
# contradict CONFIG: efa must use the device for its messages, and efa-shm only for
# the handshake, which takes less than 100 packets
wrong_device_path()
{
	local packets
	[[ $1 =~ ^efa(|-udp|-shm)$ ]] && ! softefa_real || return
	[[ $2 != mem && $2 != av && $2 != start ]] || return
	packets=$(sed -n 's/^softefa stats:.* tx_pkts=\([0-9]*\).*/\1/p' \
		"$work/err" | awk '{ sum += $1 } END { print sum + 0 }')
	if [[ $1 == efa-shm ]]; then
		[[ $packets -ge 100 ]]
	else
		[[ $packets -lt 100 ]]
	fi
}

# shellcheck disable=SC2016 # awk expands it
keep_awk='
	/^hop\.before / { before = $2; next }
	/^hop\.after / { after = $2; next }
	NF == 2 && $1 !~ /^!/ { name[++n] = $1; value[n] = $2 }
	END {
		for (i = 1; i <= n; i++)
			print "V", round, config, name[i], value[i], \
				before + 0, after + 0
	}'

# error_line CONFIG: prints the line of $work/err that has the cause: the first line
# for a job of mpirun (mpi-*), the last line for duobench
error_line()
{
	awk -v first="$([[ $1 != mpi-* ]] || echo 1)" \
		'/[[:alpha:]]/ && !/ stats: / {
			gsub("\t", " ")
			if (!first || line == "")
				line = $0
		}
		END { print line }' "$work/err"
}

# keep ROUND CONFIG TESTS STATUS: records the values of the program's output in
# $work/out
keep()
{
	local reason
	reason=$(sed -n 's/^!//p;T;q' "$work/out")
	if [[ -z $reason && $4 -ne 0 ]]; then
		reason="exit status $4: $(error_line "$2")"
	fi
	if [[ -z $reason ]] && wrong_device_path "$2" "$3"; then
		reason="EFA used another path than configured"
	fi
	if [[ -n $reason ]]; then
		no_value "$2" "$3" "$reason"
		# After a failure only the values of curves are recorded, because
		# a curve may end early.
		[[ $3 =~ ^(posted|unexpected|av)$ ]] || return 0
	fi
	awk -v OFS='\t' -v round="$1" -v config="$2" "$keep_awk" \
		"$work/out" >>"$raw"
}

# measure ROUND CONFIG TESTS ARGUMENT...: runs the tests once in this
# configuration
measure()
{
	local round=$1 config=$2 tests=$3 status=0 prov device
	local -a args vars command
	shift 3
	[[ ${failures[$config $tests]:-0} -lt 2 ]] || return 0
	config_of "$config" || die "cannot measure $config" "no such" \
		"see contrib/bench.d/configs.sh"
	if [[ -n $device && ! -f $softefa_lib ]] && ! softefa_real; then
		no_value "$config" "$tests" "no EFA device, no software one"
		return
	fi
	command_of
	"${command[@]}" "$@" ${quick:+-q} ${realtime:+-F} -t "$tests" \
		>"$work/out" 2>"$work/err" </dev/null || status=$?
	keep "$round" "$config" "$tests" "$status"
}

# time_left ROUND: true if there is time (--time) for another round that takes as
# long as the longest round of this suite so far
time_left()
{
	if [[ $1 -eq 1 ]]; then
		round_longest=0
	elif [[ $((SECONDS - round_began)) -gt $round_longest ]]; then
		round_longest=$((SECONDS - round_began))
	fi
	round_began=$SECONDS
	[[ -z $time || $((SECONDS + round_longest)) -le $time ]] && return
	say "round $1 is not started: --time $time"
	return 1
}

# in_order PREFIX CONFIG...: sets the array "ordered" to the CONFIGs that
# --configs selects, in the given order or, with --random, in a random order. In
# --configs their names have the PREFIX. The caller must have seeded RANDOM.
in_order()
{
	local prefix=$1 config i j
	shift
	ordered=()
	for config; do
		[[ -n $configs && ,$configs, != *,$prefix$config,* ]] ||
			ordered+=("$config")
	done
	[[ -n $random ]] || return 0
	for ((i = ${#ordered[@]} - 1; i > 0; i--)); do
		j=$((RANDOM % (i + 1)))
		config=${ordered[i]}
		ordered[i]=${ordered[j]}
		ordered[j]=$config
	done
}

# each_round ROUNDS TESTS CONFIGS ARGUMENT...: measures the selected CONFIGS in
# each round
each_round()
{
	local round count=$1 tests=$2 config
	local -a ordered list
	read -ra list <<<"$3"
	shift 3
	for ((round = 1; round <= count; round++)); do
		time_left "$round" || break
		in_order "" "${list[@]}"
		for config in "${ordered[@]}"; do
			measure "$round" "$config" "$tests" "$@"
		done
	done
}

# With --quick, the UDP wire is measured only if --configs names it.
run_main()
{
	local names=${all_configs[*]} budget=10
	if [[ -n $quick ]]; then
		budget=2
		[[ -n $configs ]] ||
			names=$(printf '%s\n' "${all_configs[@]}" | grep -v udp)
	fi
	each_round "$rounds" lat,lat-any,lat-msg,wild,bw,rate,rate-any,idle \
		"$names" -b "$budget"
}

# Measures RMA, with targets that poll and with targets that do not poll, to show
# which providers need a target that polls.
run_rma()
{
	local names="shm near duo-tcp duo-efa hook-efa duo-efa-remote efa"
	each_round "$rounds" lat,put,get,rma-bw "$names" \
		-b "$([[ -n $quick ]] && echo 2 || echo 10)" -S 1048576
	each_round "$rounds" fadd "${names/ duo-tcp}" -b 5 -S 65536
	each_round "$rounds" rma-still "near duo-tcp duo-efa" -b 5 -S 65536
}

run_multi()
{
	each_round "$rounds" multi \
		"shm near duo-tcp tcp duo-efa hook-efa duo-efa-remote efa" -b 5
}

run_wake()
{
	each_round "$(((rounds + 1) / 2))" wake \
		"near duo-tcp duo-tcp-remote tcp duo-efa duo-efa-remote"
}

run_many()
{
	local n cores
	cores=$(nproc)
	for n in $(tr ',' ' ' <<<"${ranks:-$((cores < 8 ? cores : 8))}"); do
		each_round "$(((rounds + 1) / 2))" fan-in,alltoall \
			"shm near duo-tcp duo-efa duo-efa-shm efa-shm efa tcp" -n "$n" \
			-b "$([[ -n $quick ]] && echo 3 || echo 20)"
		failures=()
	done
	[[ $cores -ge 4 ]] || return 0
	each_round "$(((rounds + 1) / 2))" rate-pairs \
		"near near-threads duo-tcp duo-tcp-threads duo-efa duo-efa-threads" \
		-n "$((cores / 4 * 4))" -S 8
}

run_start()
{
	local n counts="1 2 4 8 16 32 64"
	[[ -z $quick ]] || counts="2 8"
	for n in $counts; do
		each_round "$(((rounds + 1) / 2))" start \
			"shm near duo-efa duo-efa-shm efa-shm efa duo-tcp tcp" -n "$n" -S 8
		failures=()
	done
}

run_growth()
{
	local test count=3
	[[ -z $quick ]] || count=1
	for test in cq posted unexpected av; do
		each_round "$count" "$test" "shm near duo-tcp duo-efa duo-efa-shm efa-shm" \
			-b 3
	done
}

run_mem()
{
	each_round 1 mem "${all_configs[*]}"
}

insn_one()
{
	local config=$1 test=$2 prov device phases status=0
	local -a args vars command
	config_of "$config"
	command_of
	rm -rf "$work/cg"
	mkdir "$work/cg"
	runner=(valgrind -q --tool=callgrind --collect-atstart=no
		--callgrind-out-file="$work/cg/%p")
	command_of
	runner=()
	"${command[@]}" -a 300 -t "$test" >"$work/out" 2>"$work/err" \
		</dev/null || status=$?
	if [[ $status -ne 0 ]]; then
		keep 1 "$config" "$test" "$status"
		return
	fi
	phases=$(python3 "$bench_dir/bench.d/callgrind.py" "$work/cg" "$test" \
		${profile:+"$profile" "$config"})
	echo "$phases" >"$work/out"
	: >"$work/err"
	awk -v OFS='\t' -v config="$config" \
		'{ print "V", 1, config, $1, $2 }' "$work/out" >>"$raw"
}

# Counts instructions by the CPU's counter or, if that does not work, by callgrind
# (not with --native). Aging of wildcard receives is disabled, because it depends on
# the clock: in lockstep, and particularly under valgrind, aging would occur for
# each message; in applications it occurs for one message in hundreds.
run_insn()
{
	local test config
	local -x FI_OFI_DUO_DEFER_US=1000000
	if [[ -n $native ]] || ! command -v valgrind >/dev/null; then
		each_round 1 insn "shm near duo-tcp duo-tcp-safe duo-efa hook-efa \
			duo-efa-shm efa-shm efa duo-efa-remote tcp duo-tcp-remote"
		for test in insn-any insn-large insn-put insn-get insn-fadd; do
			each_round 1 "$test" \
				"shm near duo-tcp duo-efa hook-efa duo-efa-shm efa-shm"
		done
		return
	fi
	[[ -z $profile ]] || : >"$profile"
	for config in shm near duo-tcp duo-tcp-safe duo-efa hook-efa duo-efa-shm efa \
		duo-efa-remote tcp duo-tcp-remote efa-shm; do
		for test in insn insn-any insn-large insn-put insn-get insn-fadd
		do
			[[ -z $configs || ,$configs, == *,$config,* ]] ||
				continue
			[[ $test == insn || $config != *efa-* ]] || continue
			[[ -z $quick || -n $configs ||
				$config != *-remote ]] || continue
			insn_one "$config" "$test"
		done
	done
}

about()
{
	printf 'M\t%s\t%s\n' "$1" "$2" >>"$raw"
}

# bench_run: runs all selected suites, and writes their results to $raw
bench_run()
{
	local suite
	: >"$raw"
	about date "$(date -u +%FT%TZ)"
	about commit "$(git -C "$duo_src" describe --always --dirty \
		2>/dev/null || echo unknown)"
	about cpu "$(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo)"
	about cores "$(nproc)"
	about kernel "$(uname -sr)"
	about load "$(cut -d' ' -f1-3 /proc/loadavg)"
	about efa "$(softefa_real && echo real || echo software)"
	about rounds "$rounds"
	if [[ -n $random ]]; then
		RANDOM=$seed
		about seed "$seed"
		say "each round in a random order; to repeat it: --seed $seed"
	fi
	for suite in ${suites//,/ }; do
		[[ ,$only, == *,$suite,* ]] || continue
		say "$suite"
		"run_$suite"
	done
	about load-after "$(cut -d' ' -f1-3 /proc/loadavg)"
}
