# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=sh
#
# fi_pingpong between two processes of this host. In POSIX sh; the checks of contrib/
# use these functions, too.

# listening PORT: true if a process listens on this port
listening()
{
	grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") [^ ]* 0A " \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# pingpong DIR PROVIDER COMMAND...: runs fi_pingpong's client and server, on a free
# port. The port is random, since processes in other pid namespaces may have the same
# pid and search at the same time. The outputs are DIR/client and DIR/server. COMMAND
# is fi_pingpong with its prefix. If a trap of the caller interrupts this
# function, the trap must call pingpong_end.
pingpong()
{
	dir=$1 provider=$2
	shift 2
	set -- "$@" -p "$provider" -e rdm -I 100 -S 4096
	port=$((20000 + $(od -A n -N 2 -t u2 /dev/urandom) % 10000))
	while listening "$port"; do
		port=$((port + 1))
	done
	# --foreground: the terminal's Ctrl-C ends client and server, too
	timeout --foreground 600 "$@" -B "$port" >"$dir/server" 2>&1 &
	server=$!
	until listening "$port" || ! kill -0 "$server" 2>/dev/null; do
		sleep 0.1
	done
	timeout --foreground 600 "$@" -P "$port" 127.0.0.1 >"$dir/client" 2>&1 &
	client=$!
	wait "$client" || {
		set -- $?
		pingpong_end	# the server might still wait for a client
		return "$1"
	}
	wait "$server"
}

# pingpong_end: ends the processes that pingpong() has started
pingpong_end()
{
	kill ${server:+"$server"} ${client:+"$client"} 2>/dev/null || true
}

# pingpong_local DIR: true if all messages of the client used shared memory;
# otherwise prints the fault
pingpong_local()
{
	if ! grep -q 'ofi_duo stats:.* local_tx_msgs=[1-9]' "$1/client"; then
		echo "no message went over shared memory"
	elif ! grep -q 'ofi_duo stats:.* core_tx_msgs=0 ' "$1/client"; then
		echo "messages went over the core"
	else
		return 0
	fi
	return 1
}
