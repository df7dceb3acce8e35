/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fd exchange: two ports send requests and replies with descriptors, each to the
 * other's socket, and attach to each other's rings. Both may request at the same time.
 *
 * Faults: a queue is full; sender or receiver lack free descriptors, so that a datagram
 * is not sent or loses descriptors, or its pidfd cannot be monitored. Port 1 may be
 * killed at any step, or close while its process lives. The faults may end at any
 * moment. From then on the live ports poll in turn, and 100 ms pass between two polls of
 * a port.
 *
 * Asserted: a port uses only descriptors of the right nonce, and closes each descriptor
 * once. After the last poll, each requester has attached or has an error, each claim
 * of a live sender has its rx ring, and no port keeps a peer whose port has ended.
 *
 * Lines for ./run, which explains their keys:
 * C: link/fdx.c near_fdx_msg_fault near_fdx_msg_fd near_fdx_monitor near_fdx_temporary
 * C: link/fdx.c near_answer near_fdx_accept near_fdx_msg_good near_fdx_msg_read near_fdx_read
 * C: link/fdx.c near_fdx_request near_fd_drop near_fd_drop_all near_fd_closed near_peer_open
 * C: link/fdx.c near_peer_shut
 * C: link/fdx_socket.c near_name near_fdx_close near_fdx_fds near_fdx_send near_fdx_next
 * C: link/fdx_socket.c near_fdx_msg_parse near_fdx_msg_drop
 * C: link/peer.c near_peer_find near_peer_get near_peer_expect near_peer_free near_peer_put
 * C: link/peer.c near_peer_prepare near_connect_failed near_connect_open near_connect_wait
 * C: link/peer.c near_connect
 * C: link/alive.c near_monitor_pid near_monitor near_peer_monitor near_unmonitor near_peer_fail
 * C: link/alive.c near_peer_end near_port_events near_peer_missed
 * C: link/alive.c near_port_find_failed
 * C: link/rx_ring.c near_rx_ring_peer near_rx_ring_open near_rx_ring_release
 * C: link/port.c near_close
 *
 * LARGE: up to 400,000 states
 * WITH PROC: one of the ports opens the other's descriptors through /proc, or opens only
 * a pidfd; a later port with another nonce may get the pid of port 1. Without PROC the
 * two ports are in different pid namespaces.
 * MUTANT ASKS_ONCE: a request is not repeated
 * MUTANT REFUSED_LATER: a closed socket counts as a full one
 * MUTANT NAME_PID PROC: the name of a socket is made of the pid
 * MUTANT KEEPS: a descriptor that the peer now owns stays in the datagram, too
 * MUTANT NO_DROP: a datagram with missing descriptors is not dropped
 * MUTANT OVERWRITES: a datagram's segment replaces the one that the peer has
 * MUTANT MONITORS_AGAIN: the pidfd of each datagram is monitored, not only of the first
 * MUTANT EXPECTS_AGAIN: each request takes a reference to the peer, not only the first
 * MUTANT EXPECTS_ALWAYS: the end of a peer does not drop the reference of its request
 * MUTANT UNMONITORED: a request without a monitored pidfd takes a reference
 * MUTANT STAYS_OFF: a reply after the timeout does not permit sends
 * MUTANT NO_MARK: the mark of a closed port is not read through its descriptor
 * MUTANT NO_KEEP PROC: a peer is not kept while its reply is pending
 * MUTANT NO_NONCE PROC: the nonce of an opened segment is not checked
 *
 * Not modeled: datagrams of other users, hostile ones, and those for device memory;
 * hidden processes (hidepid); messages; the descriptors of wake pipe and region table,
 * which are passed as the segment's; lack of memory and of rings; monitoring by start
 * time; queues of several datagrams; the request of a wake pipe after the connection.
 */
#define POLLS 10
#define PORTS 3		/* 0; 1; 2, which has the pid of 1 after the end of 1 */
#define RECORDS 4	/* peers: 1 and 2 at port 0; 0 at port 1; 0 at port 2 */
#define QUEUE 1

#define RECORD(p, o) ((p) -> (p) + 1 : (o) - 1)
#define FIRST(p) ((p) -> (p) + 1 : 0)
#define LAST(p) ((p) -> (p) + 1 : 1)
#define OTHER(r) ((r) < 2 -> (r) + 1 : 0)
#define BACK(r) (((r) + 2) % RECORDS)

/* files[]: number of open descriptors of each kind, port and owner */
#define SEGMENT 0
#define PIDFD (PORTS * PORTS)

#define REQUEST 0
#define REPLY 1

/* near_peer.state */
#define ABSENT 0
#define NEW 1
#define OPEN 2
#define OFF 3
#define GONE 4

/* errno values */
#define EAGAIN 1
#define ESRCH 2
#define EACCES 3
#define EMFILE 4
#define ENOENT 5
#define ETIMEDOUT 6

/* how a port gets descriptors: by requests; by /proc; only pidfds by /proc */
#define FAR 0
#define DIRECT 1
#define DENIED 2

chan queue[PORTS] = [QUEUE] of { byte, byte, byte };	/* from, to, kind */
bool going[PORTS], bound[PORTS], closed[PORTS], exists[PORTS];
bool killed, calm, dir;
byte mode[2], files[2 * PORTS * PORTS];
byte polls, turn;

byte state[RECORDS], refs[RECORDS], asked[RECORDS];
bool segment[RECORDS], pidfd[RECORDS], user[RECORDS], dying[RECORDS], expected[RECORDS], ask[RECORDS];
bool exited[RECORDS];	/* near_peer.exited or near_peer.shut */
bool ring[RECORDS];
/* the claim of the peer in this port's segment */
#define FREE 0
#define CLAIM_OPEN 1
#define CLAIM_CLOSED 2
byte claim[RECORDS];

#define MODE(p) mode[((p) -> 1 : 0)]
/* port with the pid of port o */
#define HOLDER(o) (((o) == 1 && !exists[1]) -> 2 : (o))
#ifdef NAME_PID
#define SOCKET(o) HOLDER(o)
#else
#define SOCKET(o) (o)
#endif

/* the fault of a step: at a send; at the receipt of a datagram */
#define NONE 0
#define NO_FILES 1	/* no free descriptor; no descriptor arrives */
#define FULL 2		/* ENOBUFS, ETOOMANYREFS; only one descriptor arrives */
#define LATER 3		/* NEAR_FDX_REPEAT_MS have not passed; epoll_ctl() fails */

inline choose()
{
	if
	:: !calm -> fault = NO_FILES
	:: !calm -> fault = FULL
	:: !calm -> fault = LATER
	:: fault = NONE
	fi
}

/* what, o: which descriptor of port o; has: where the descriptor is kept */
inline open_fd(what, o, has)
{
	files[what + p * PORTS + o]++;
	has = true
}

inline drop_fd(what, o, has)
{
	if
	:: has ->
		assert(files[what + p * PORTS + o]);
		files[what + p * PORTS + o]--;
		has = false
	:: else
	fi
}

/* near_disconnect() */
inline disconnect(r)
{
	if
	:: state[r] == OPEN ->
		if
		:: claim[BACK(r)] == CLAIM_OPEN -> claim[BACK(r)] = CLAIM_CLOSED
		:: else
		fi;
		state[r] = NEW
	:: else
	fi
}

inline free_peer(r)
{
	disconnect(r);
	o = OTHER(r);
	drop_fd(SEGMENT, o, segment[r]);
	drop_fd(PIDFD, o, pidfd[r]);
	o = 0;
	state[r] = ABSENT;
	dying[r] = false;
	ask[r] = false;
	asked[r] = 0;
	exited[r] = false
}

inline get(r)
{
	if
	:: state[r] == ABSENT ->
		state[r] = NEW;
		ask[r] = MODE(p) == FAR
	:: else
	fi;
	refs[r]++
}

/* near_peer_put(), whose last part is free_unused(), later in the same step */
inline put(r)
{
	assert(refs[r]);
	refs[r]--
}

inline free_unused(r)
{
	if
	:: state[r] != ABSENT && !refs[r] && (state[r] != OPEN || dying[r]) ->
		free_peer(r)
	:: else
	fi
}

inline expect(r)
{
	if
#ifdef EXPECTS_AGAIN
	:: refs[r] < 5 ->
#else
	:: !expected[r] ->
#endif
		expected[r] = true;
		refs[r]++
	:: else
	fi
}

inline expect_no_more(r)
{
	if
	:: expected[r] ->
		expected[r] = false;
		put(r)
	:: else
	fi
}

inline fail(r)
{
	if
	:: !dying[r] && state[r] != GONE ->
		dying[r] = true;
		o = OTHER(r);
		drop_fd(PIDFD, o, pidfd[r]);
		o = 0
	:: else
	fi
}

/* near_fdx_send(), with its result in ret */
inline send(r, what)
{
	o = OTHER(r);
	o = SOCKET(o);
	if
	:: fault == NO_FILES -> ret = EMFILE
	:: fault != NO_FILES && !bound[o] -> ret = ESRCH
	:: fault != NO_FILES && bound[o] && (fault == FULL || len(queue[o]) == QUEUE) ->
		ret = EAGAIN
	:: else ->
		queue[o]!p, OTHER(r), what;
		ret = 0
	fi;
	o = 0
}

/* near_fdx_request(), with its result in ret. Without faults, one request in a round */
inline request(r)
{
	if
	:: asked[r] == 2 || (asked[r] && fault == LATER) -> ret = EAGAIN
#ifdef ASKS_ONCE
	:: asked[r] == 1 && fault != LATER -> ret = EAGAIN
#endif
	:: else ->
		send(r, REQUEST);
		if
		:: ret == ESRCH -> exited[r] = dir
		:: else -> asked[r] = (calm -> 2 : 1)
		fi;
		if
#ifdef REFUSED_LATER
		:: ret == ESRCH -> ret = EAGAIN
#endif
		:: ret == 0 -> ret = EAGAIN
		:: else
		fi
	fi
}

/* near_monitor(), with its result in ret */
inline watch(r)
{
	if
	:: pidfd[r] || dying[r] || state[r] == GONE -> ret = 0
	:: else ->
		if
		:: ask[r] -> request(r)
		:: !ask[r] && exists[OTHER(r)] ->
			o = OTHER(r);
			open_fd(PIDFD, o, pidfd[r]);
			o = 0;
			ret = 0
		:: else -> ret = ESRCH
		fi
	fi
}

/* near_fdx_accept() */
inline take(r)
{
	if
	:: !pidfd[r] && fault != LATER -> pidfd[r] = pid_fd
#ifndef KEEPS
		; pid_fd = false
#endif
#ifdef MONITORS_AGAIN
	:: pidfd[r] -> pidfd[r] = pid_fd; pid_fd = false
#endif
	:: else
	fi;
#ifdef UNMONITORED
	if
	:: kind == REQUEST -> expect(r)
	:: else
	fi;
#endif
	if
	:: pidfd[r] ->
#ifndef STAYS_OFF
		if
		:: state[r] == OFF -> state[r] = NEW
		:: else
		fi;
#endif
		if
#ifdef OVERWRITES
		:: state[r] == NEW ->
#else
		:: state[r] == NEW && !segment[r] ->
#endif
			segment[r] = seg_fd;
			seg_fd = 0
		:: else
		fi;
		if
		:: kind == REQUEST -> expect(r)
		:: else
		fi
	:: else -> kind = REPLY
	fi
}

/* near_fdx_next(), near_fdx_msg_good(). now: the sender's record; RECORDS: none */
inline receive()
{
	queue[p]?from, to, kind;
	now = RECORD(p, from);
	if
	:: fault != NO_FILES -> open_fd(SEGMENT, from, seg_fd)
	:: else
	fi;
	if
	:: fault == NONE || fault == LATER -> open_fd(PIDFD, from, pid_fd)
	:: else
	fi;
	if
	:: pid_fd && to == p && (state[now] != ABSENT || kind == REQUEST) ->
		get(now);
		if
		:: dying[now] -> kind = REPLY	/* no reply to this request */
		:: !dying[now] && state[now] != GONE -> take(now)
		:: else
		fi
	:: else ->
#ifdef NO_DROP
		seg_fd = seg_fd && pid_fd;
#endif
		now = RECORDS
	fi
}

/* near_answer(), near_peer_put(), near_fdx_msg_drop() */
inline answer()
{
	if
	:: now < RECORDS ->
		if
		:: kind == REQUEST -> send(now, REPLY)
		:: else
		fi;
		put(now);
		free_unused(now)
	:: else
	fi;
	drop_fd(SEGMENT, from, seg_fd);
	drop_fd(PIDFD, from, pid_fd);
	now = 0; from = 0; to = 0; kind = 0; ret = 0; fault = NONE
}

/*
 * near_connect_open(), with its result in ret; peer: the port whose segment it has
 * opened
 */
inline open_segment(r)
{
	peer = OTHER(r);
	if
	:: ret
	:: !ret && segment[r] -> assert(files[SEGMENT + p * PORTS + peer])
	:: else ->
		assert(MODE(p) != FAR);
		peer = HOLDER(peer);
		if
		:: !bound[peer] ->
			ret = (ask[r] -> ENOENT : ESRCH);
			exited[r] = !ask[r]
		:: bound[peer] && MODE(p) == DENIED ->
			ask[r] = true;
			request(r);
			if
			:: ret == ESRCH && !exited[r] && pidfd[r] -> ret = EACCES
			:: else
			fi
		:: else
		fi
	fi
}

/*
 * near_connect_ring(), with the segment of `peer`; near_connect_failed(). ENOENT: the
 * segment is that of another port.
 */
inline attach(r)
{
	o = OTHER(r);
	if
#ifndef NO_NONCE
	:: !ret && peer != o ->
		ret = (ask[r] -> ENOENT : ESRCH);
		exited[r] = exited[r] || !ask[r]
#endif
	:: ret == EAGAIN && fault == LATER -> ret = ETIMEDOUT
	:: else
	fi;
	if
	:: !ret ->
		assert(peer == o);
		if
		:: bound[peer] ->
			assert(claim[BACK(r)] == FREE);
			claim[BACK(r)] = CLAIM_OPEN
		:: else
		fi;
		state[r] = OPEN;
		drop_fd(SEGMENT, o, segment[r])
	:: ret == ESRCH -> fail(r)
	:: ret && ret != ESRCH && ret != EAGAIN && ret != EMFILE -> state[r] = OFF
	:: else
	fi;
	o = 0;
	peer = 0;
	ret = 0
}

/* near_rx_ring_open(), near_rx_ring_peer() */
inline open_ring(r)
{
	get(r);
	watch(r);
	if
	:: ret == ESRCH -> fail(r); ret = 0
	:: else
	fi;
	if
	:: ret == 0 -> ring[r] = true
	:: else ->
		if
#ifndef NO_KEEP
		:: ret == EAGAIN -> expect(r)
#endif
		:: else -> expect_no_more(r)
		fi;
		put(r)
	fi;
	ret = 0
}

/* near_doorbell_handle() */
inline rang(r)
{
	if
	:: claim[r] != FREE && !ring[r] -> open_ring(r)
	:: else
	fi;
	if
	:: claim[r] == CLAIM_CLOSED && ring[r] -> fail(r)
	:: else
	fi
}

/* near_port_events(), near_port_find_failed(): ret is ESRCH if the peer has failed */
inline look(r)
{
	o = OTHER(r);
	if
	:: state[r] == ABSENT || dying[r] || state[r] == GONE
	:: else ->
		if
		:: pidfd[r] && !exists[o] ->
			ret = ESRCH
		:: state[r] == OPEN && (closed[o] || claim[BACK(r)] != CLAIM_OPEN) ->
			ret = ESRCH
#ifndef NO_MARK
		:: state[r] != OPEN && segment[r] && closed[o] -> ret = ESRCH
#endif
		:: else
		fi;
		if
		:: !ret && (asked[r] || (user[r] && !ask[r])) -> watch(r)
		:: else
		fi;
		if
		:: ret == ESRCH -> fail(r)
		:: else
		fi
	fi;
	o = 0;
	ret = 0
}

/* near_port_reap(), near_peer_end(); the embedder then drops its reference */
inline reap(r)
{
	if
	:: dying[r] ->
		disconnect(r);
		o = OTHER(r);
		drop_fd(SEGMENT, o, segment[r]);
		o = 0;
		dying[r] = false;
		state[r] = GONE;
		if
		:: ring[r] -> ring[r] = false; claim[r] = FREE; put(r)
		:: else
		fi;
#ifndef EXPECTS_ALWAYS
		expect_no_more(r);
#endif
		if
		:: user[r] -> user[r] = false; put(r)
		:: else
		fi
	:: else
	fi;
	free_unused(r)
}

/* a process or a port ends: the kernel closes its descriptors and its socket */
inline forget()
{
	r = FIRST(p);
	do
	:: r <= LAST(p) ->
		free_peer(r);
		refs[r] = 0;
		user[r] = false;
		expected[r] = false;
		ring[r] = false;
		claim[r] = FREE;
		r++
	:: else -> break
	od;
	r = 0
}

inline unbind()
{
	bound[p] = false;
	do
	:: len(queue[p]) -> queue[p]?from, to, kind
	:: else -> break
	od;
	from = 0; to = 0; kind = 0
}

inline no_files()
{
	o = 0;
	do
	:: o < PORTS ->
		assert(!files[SEGMENT + p * PORTS + o] && !files[PIDFD + p * PORTS + o]);
		o++
	:: else -> break
	od;
	o = 0
}

/*
 * After the faults, the ports poll in turn. The last port of the last round checks
 * the assertions about the end.
 */
inline next_turn()
{
	polls++;
	do
	:: turn = (turn + 1) % PORTS;
		if
		:: going[turn] -> break
		:: else
		fi
	od
}

#define MY_TURN (!calm || (turn == p && polls < POLLS))

/* the end of a step: of a poll that handles peer r, or of a send to peer r */
inline step_over(r)
{
	at = 0;
	fault = NONE;
	asked[r] = (asked[r] -> 1 : 0);
	if
	:: calm && turn == p && r < LAST(p) -> r++
	:: calm && turn == p && r == LAST(p) ->
		r = 0;
		next_turn()
	:: else -> r = 0
	fi
}

inline right(r)
{
	if
	:: bound[OTHER(r)] ->
		/* OFF: sends return an error until a late reply arrives */
		assert(!user[r] || state[r] == OPEN ||
		       (state[r] == OFF && MODE(p) == DENIED));
		assert(claim[r] == FREE || ring[r])
	:: else ->
		assert(state[r] == ABSENT ||
		       (state[r] == OFF && user[r] && MODE(p) == DENIED))
	fi
}

#define SENDS(r) (user[r] && !dying[r] && state[r] == NEW)

proctype port(byte p)
{
	byte r, ret, from, to, kind, now, peer, o, fault, at;
	bool seg_fd, pid_fd;

	{
		if
		:: d_step { true -> r = FIRST(p); user[r] = true; get(r); r = 0 }
		:: true
		fi;
		do
		:: !at && !calm && p == 1 -> break	/* near_close() */
		:: atomic {
			!at && MY_TURN && nempty(queue[p]) -> choose();
			d_step { receive(); answer() }
		   }
		:: atomic {
			!at && (!calm || (MY_TURN && empty(queue[p]))) ->
			choose();
			if
			:: !calm -> r = LAST(p)
			:: r = (r -> r : FIRST(p))
			fi;
			d_step {
				look(r);
				rang(r);
				reap(r);
				if
				:: SENDS(r) ->
					watch(r);
					assert(ret || segment[r] || MODE(p) != FAR);
					at = 1
#ifndef PROC
					;
					open_segment(r);
					attach(r);
					step_over(r)
#endif
				:: else -> step_over(r)
				fi
			}
		   }
#ifdef PROC
		:: atomic { at == 1 -> choose(); d_step { open_segment(r); at = 2 } }
		:: atomic { at == 2 -> choose(); d_step { attach(r); step_over(r) } }
#endif
		:: d_step {
			calm && polls == POLLS -> r = FIRST(p);
			do
			:: r <= LAST(p) -> right(r); r++
			:: else -> r = 0; break
			od
		   };
		   goto out
		od;
		/* near_close() closes its segment's descriptor first, its socket last */
		if
		:: d_step { unbind() }
		:: true
		fi;
		d_step { forget() };
		closed[p] = true;
		d_step {
			unbind();
			no_files();
			going[p] = false;
			if
			:: calm && turn == p -> next_turn()
			:: else
			fi
		};
		if
		:: atomic { !calm -> exists[p] = false }
		:: true
		fi;
		goto out
	} unless { p == 1 && killed };
	d_step { forget(); unbind(); at = 0; ret = 0; peer = 0; fault = 0 };
	atomic {
		exists[p] = false;
		going[p] = false
	};
out:
	skip
}

init {
	atomic {
#ifdef PROC
		if
		:: mode[0] = DIRECT
		:: mode[0] = DENIED; dir = true
		:: mode[1] = DIRECT
		fi;
#endif
		going[0] = true;
		going[1] = true;
		bound[0] = true;
		bound[1] = true;
		exists[0] = true;
		exists[1] = true;
		run port(0);
		run port(1)
	};
	if
	:: killed = true; !going[1]
	:: true
	fi;
#ifdef PROC
	/* the process ends after it has closed its port */
	if
	:: atomic { !exists[1] ->
		exists[2] = true; going[2] = true; bound[2] = true; run port(2) }
	:: true
	fi;
#endif
	if
	:: atomic { going[1] -> calm = true; turn = 1 }
	:: atomic { going[2] -> calm = true; turn = 2 }
	:: atomic { calm = true; turn = 0 }
	fi
}
