# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154,SC2034 # duo_src: common.sh; short, table: torture
#
# Two ranks exchange messages in surroundings in which a resource is missing or scarce.
# Both ranks must end: either the messages use an expected path, or there is an error.
# No rank may hang or crash. The result is a table, whose rows have the surroundings,
# the path of the messages, and the first warning.

surround_program=rdm_tagged_pingpong
surround_rows=''

# surround_path LOG: prints the path of the messages, by the statistics in LOG.
surround_path()
{
	awk -F'[ =]' '
		/^ofi_duo stats: / {
			for (i = 1; i < NF; i++) {
				if ($i == "local_tx_msgs") here += $(i + 1)
				if ($i == "core_tx_msgs") core += $(i + 1)
			}
			n++
		}
		END {
			if (!n) print "no endpoint"
			else if (here && core) print "both"
			else if (here) print "local"
			else if (core) print "core"
			else print "none"
		}' "$1"
}

# surround_only_core LOG: true if the program failed only because messages used
# the core. The program always expects the local path, but in some surroundings the
# core is right.
surround_only_core()
{
	grep -aq 'sends used the core path' "$1" &&
		! grep -a '^FAILED: ' "$1" | grep -aqv 'sends used the core path'
}

# surround_row WHERE EXPECTED LOG STATUS: adds a row to the table and prints PASS or
# FAIL; for a skipped test, only prints SKIP. EXPECTED is a pattern of paths. If the
# program has failed, the path is "error", or "core" if the program failed only
# because messages used the core.
surround_row()
{
	local where=$1 expected=$2 log=$3 status=$4 path warning
	path=$(surround_path "$log")
	if [[ $status -eq 124 || $status -ge 128 ]]; then
		path="hangs or crashes: status $status"
	elif [[ $status -eq 77 ]]; then
		echo "SKIP: surroundings: $where ($(sed -n 's/^SKIPPED: //p' "$log" |
			head -n 1))"
		return
	elif [[ $status -ne 0 ]]; then
		path=error
		! surround_only_core "$log" || path=core
	fi
	warning=$(grep -ao 'warn> .*' "$log" | head -n 1 |
		sed 's/^warn> //; s/ep 0x[0-9a-f]*/ep/; s/: [^ ]*ofi_duo\.[^ ]*:/: a record:/; s,^/dev/shm/ofi_duo[^ ]*:,a record:,; s/|/,/g') || true
	surround_rows+="| $where | $path | ${warning:--} |"$'\n'
	# shellcheck disable=SC2053 # a pattern
	if [[ $path == $expected ]]; then
		echo "PASS: surroundings: $where: $path"
	else
		tail -n 30 "$log" | sed 's/^/  | /'
		echo "FAIL: surroundings: $where: $path, not $expected"
		failed=1
	fi
}

# surround WHERE EXPECTED COMMAND...: runs COMMAND, which runs both ranks, and
# calls surround_row for its result.
surround()
{
	local where=$1 expected=$2 log status=0
	shift 2
	log=$(mktemp)
	FI_LOG_LEVEL=warn FI_LOG_PROV=ofi_duo FI_OFI_DUO_STATS=1 \
		with_limit "$hang_s" "$@" >"$log" 2>&1 </dev/null || status=$?
	surround_row "$where" "$expected" "$log" "$status"
	rm -f "$log"
}

# surround_here WHERE EXPECTED COMMAND...: runs the program, which forks two ranks,
# with the prefix COMMAND
surround_here()
{
	local where=$1 expected=$2
	shift 2
	surround "$where" "$expected" "$@" "$OFI_DUO_BUILD/fabtests/$surround_program" \
		-q -S 65537 -x "$seed" -T "$((hang_s - 5))" -p "tcp;ofi_duo"
}

# surround_room SIZE FULL COMMAND...: runs COMMAND with a /dev/shm of SIZE. If FULL is
# not empty, another process fills the remaining space while COMMAND runs.
surround_room()
{
	local size=$1 full=$2 status=0
	shift 2
	mount -t tmpfs -o "mode=1777,$size" ofi_duo-room /dev/shm || exit 77
	if [[ -n $full ]]; then
		(sleep 0.3; exec dd if=/dev/zero of=/dev/shm/full bs=64k) 2>/dev/null &
	fi
	"$@" || status=$?
	exit "$status"
}

# surround_cgroup BYTES COMMAND...: runs COMMAND in a cgroup (version 1 or 2)
# with this limit of memory.
surround_cgroup()
{
	local bytes=$1 base group limit=memory.max status=0
	shift
	base=/sys/fs/cgroup
	[[ -f $base/cgroup.controllers ]] || {
		base+=/memory
		limit=memory.limit_in_bytes
	}
	group=$base/ofi_duo-torture.$$
	if ! mkdir "$group" 2>/dev/null || ! echo "$bytes" >"$group/$limit" 2>/dev/null
	then
		rmdir "$group" 2>/dev/null || true
		echo "SKIPPED: no cgroup can be made"
		exit 77
	fi
	(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") || status=$?
	# 137: the kernel has killed the process at the limit, which is an error,
	# not a crash
	[[ $status -ne 137 ]] || status=1
	rmdir "$group" 2>/dev/null || true
	exit "$status"
}

# surround_rank RANK HOST COMMAND...: runs one of two ranks on a host, with the
# prefix COMMAND
surround_rank()
{
	local rank=$1 host=$2
	shift 2
	"$duo_src/contrib/hosts" exec "$host" -- "$@" \
		"$OFI_DUO_BUILD/fabtests/$surround_program" -q -S 65537 -x "$seed" \
		-T "$((hang_s - 5))" -p "tcp;ofi_duo" -r "$rank" -n 2 \
		-o 10.77.0.1:7471 -H "h$host" -s "10.77.0.$host"
}

# surround_pair HOST COMMAND...: within contrib/hosts, runs rank 0 on h1 and
# rank 1 on HOST, each with the prefix COMMAND. The exit status is the worse of
# the two.
surround_pair()
{
	local host=$1 one=0 other=0 pid
	shift
	surround_rank 0 1 "$@" &
	pid=$!
	surround_rank 1 "$host" "$@" || other=$?
	wait "$pid" || one=$?
	exit $((one > other ? one : other))
}

# Runs the ranks in all combinations of namespaces, with a common /dev/shm and
# with separate ones.
surround_namespaces()
{
	local host shm user pid ipc expected
	local -a flags room
	for host in 1 2; do
		for shm in shared separate; do
			# a /dev/shm for each rank; contrib/hosts has one for each host
			room=()
			[[ $host$shm != 1separate ]] ||
				room=("$self" --room size=64m "")
			for user in '' user; do for pid in '' pid; do for ipc in '' ipc; do
				[[ -z $short || $ipc$pid == ipcpid ]] || continue
				flags=()
				[[ -z $user ]] || flags+=(--user --map-root-user)
				[[ -z $pid ]] || flags+=(--pid --fork --kill-child
					--mount-proc)
				[[ -z $ipc ]] || flags+=(--ipc)
				# an address of tcp is valid in one network
				# namespace only
				expected=core
				[[ $host$shm != 1shared ]] || expected=local
				surround "namespaces$([[ $host == 1 ]] ||
					echo " net")${user:+ user}${pid:+ pid}${ipc:+ ipc}, /dev/shm $shm" \
					"$expected" env OFI_DUO_HOSTS_SHM="${shm/separate/64m}" \
					"$duo_src/contrib/hosts" "$host" "$self" --pair "$host" \
					unshare --mount "${flags[@]}" -- "${room[@]}"
			done; done; done
		done
	done
}

surround_limits()
{
	local forbid=$OFI_DUO_BUILD/contrib/lib/forbid call kb n
	for call in membarrier pidfd_open process_vm_readv process_vm_writev; do
		surround_here "seccomp: no $call" local "$forbid" "$call=1"
	done
	surround_here "seccomp: no memfd_create" core "$forbid" memfd_create=1
	[[ -z $short ]] || return 0
	for kb in 200000 400000 4000000; do
		surround_here "RLIMIT_AS of $kb KiB" '@(local|core|error|no endpoint)' \
			prlimit --as=$((kb * 1024))
	done
	for n in 16 24 32 64; do
		surround_here "RLIMIT_NOFILE of $n" '@(local|core|both|error|no endpoint)' \
			prlimit --nofile="$n"
	done
	surround_here "RLIMIT_MEMLOCK of 0" local prlimit --memlock=0
	for n in 16 64 256; do
		surround_here "cgroup with $n MiB" '@(local|core|error)' \
			"$self" --cgroup $((n << 20))
	done
}

surround_rooms()
{
	local size
	for size in size=4k,nr_inodes=1 size=1m size=16m size=64m; do
		surround_here "/dev/shm: $size" '@(local|core)' \
			unshare --mount "$self" --room "$size" ""
		# dd cannot create its file if the root directory has the only inode
		[[ $size != *nr_inodes=1 ]] || continue
		surround_here "/dev/shm: $size, filled" '@(local|core)' \
			unshare --mount "$self" --room "$size" 1
	done
}

# surround_merge: merges the rows of the eight combinations of user, pid and ipc
# namespaces, if they have the same path and warning
surround_merge()
{
	awk '
		!/^\| namespaces/ {
			print
			next
		}
		{
			at = index($0, ", /dev/shm")
			kinds = substr($0, 1, at - 1)
			gsub(/ (user|pid|ipc)/, "", kinds)
			row[++rows] = $0
			merged[rows] = kinds " (with and without user, pid, ipc)" \
				substr($0, at)
			count[merged[rows]]++
		}
		END {
			for (i = 1; i <= rows; i++) {
				if (count[merged[i]] != 8) print row[i]
				else if (!printed[merged[i]]++) print merged[i]
			}
		}'
}

part_surroundings()
{
	surround_limits
	if may_unshare; then
		surround_rooms
		surround_namespaces
	else
		echo "SKIP: surroundings: namespaces (not permitted here)"
	fi
	[[ -z $table ]] || {
		cat <<-END
			<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->
			<!-- SPDX-FileCopyrightText: The ofi_duo authors -->

			# Surroundings: the path of messages if a resource is scarce or missing

			For users and administrators. In each run two processes of one host exchange messages over tcp;ofi_duo, while a
			resource limit is low, a system call is forbidden, or the processes are in different namespaces.

			The first column has the condition of the run, for both processes:

			- *seccomp: no X*: a seccomp filter makes the system call X fail.
			- *RLIMIT_X of N*: each process has this resource limit; see setrlimit(2).
			- *cgroup with N*: both processes are in one control group, which has this memory limit.
			- */dev/shm: size=S,nr_inodes=N*: the file system in /dev/shm has the size S, and N inodes, of which its
			  root directory takes one. Without *nr_inodes*, the number of inodes is the kernel's default.
			- *filled*: in addition, another process fills all free space of this file system during the run.
			- *namespaces*: each process has its own mount namespace. *net*: each also has its own network namespace. *With and
			  without user, pid, ipc*: eight runs, in which each process also had its own namespaces of none, some or all of these
			  three kinds; all eight had the same result.
			- */dev/shm shared*: both processes have the same file system in /dev/shm. */dev/shm separate*: each has its own.

			The second column has the path of the messages: *local* is shared memory, *core* is tcp. *error*: the program could
			not start, or the kernel killed it. In all rows without *error*, all messages arrived.

			ofi_duo finds other processes by small files in /dev/shm, and an address of tcp is valid in one network namespace only.
			So messages are local only if both processes have the same /dev/shm and the same network namespace. The shared memory
			is in memfds, so messages stay local when /dev/shm is filled during the run. With nr_inodes=1, ofi_duo cannot create
			its files.

			The third column has the first warning, or *-* for none. *near* is ofi_duo's shared-memory transport. A *record* is
			one of the files in /dev/shm; the warning itself has the name of the file. *Ignored*: messages to the
			process of the record take the core. *Registry D*: ofi_duo has the directory of its records in D.

			\`contrib/torture --table docs/surroundings.md surroundings\` wrote this page in 2026-11.

		END
		echo '| surroundings | path of the messages | first warning |'
		echo '|---|---|---|'
		printf %s "$surround_rows" | surround_merge
	} >"$table"
}
