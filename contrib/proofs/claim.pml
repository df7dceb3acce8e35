/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Claims: senders, in turn or concurrently, claim a ring of a port, store their address,
 * open the claim, ring the doorbell, send a slot, close the claim and ring again. Each
 * sender may be killed at any step. The port creates an rx ring when the doorbell rings,
 * and searches for claims that have no rx ring. It ends the rx rings whose sender has
 * closed or failed: it clears the ring and frees the claim.
 *
 * Asserted: a ring has one owner, and contains zeros when it is claimed. The address
 * that the port reads is the owner's. A slot that a sender published before its end is
 * delivered before the rx ring ends. In the end all claims are free and all rings zero.
 *
 * Lines for ./run, which explains their keys:
 * C: link/peer.c near_claim near_connect_ring near_disconnect near_doorbell_ring
 * C: link/rx_ring.c near_rx_ring_open near_rx_ring_peer near_ring_clear near_ring_free
 * C: link/rx_ring.c near_rx_ring_release near_claim_exited
 * C: link/rx_ring.c near_rx_ring_closed near_doorbell_handle near_claim_abandoned near_rings_check
 * C: link/alive.c near_peer_drained near_peer_end near_port_reap near_peer_ended
 * C: link/port.c near_close
 *
 * LARGE: up to 800,000 states
 * WITH TWO: two rings, and one of the senders may be killed. Without TWO there is one
 * ring, which the second sender finds claimed or free again; both senders may be killed.
 * WITH NO_MEMORY: a sender that has claimed gets no memory, and releases the claim.
 * MUTANT TAKES_PLAIN: a ring is claimed by a load and a store
 * MUTANT NO_PID: a claim has no pid, as in another pid namespace
 * MUTANT NO_TICK: the port does not check claims without an rx ring
 * MUTANT OPEN_EARLY: the claim is opened before the address is stored
 * MUTANT OPEN_RELAXED: as OPEN_EARLY, because the two stores are reordered
 * MUTANT NO_CLEAR: a ring is not cleared at its end
 * MUTANT FREE_FIRST: the claim is freed before the ring is cleared
 * MUTANT NO_DRAIN: an rx ring ends without delivery of its slots
 * MUTANT CLOSED_FIRST: a closing port marks its segment before its claims
 *
 * Not modeled: reused pids (a claim stays while a process has its pid), rings that the
 * port rejects because it cannot see the sender's process or has disconnected the sender,
 * several pages of claims, a port without memory for an rx ring.
 */
#ifdef TWO
#define RINGS 2
#else
#define RINGS 1
#endif
#define SENDERS 2
#define STATE(r) (r)
#define WHO(r) (2 + (r))
/* the ring: 0, or sender + 1 after it has published its slot */
#define SLOT(r) (4 + (r))
#define WORDS 6
#define THREADS 3
#define DEPTH 4
#define PORT 2
#define NOBODY 9
#ifdef OPEN_RELAXED
#define PASSES PASS(0) PASS(2)
#elif defined(TWO)
#define PASSES PASS(2) PASS(3)	/* WHO */
#else
#define PASSES PASS(2)
#endif
#include "memory.pml"

/* claim.state: FREE, or state + sender + 1 (the sender's pid); WHO: sender + 1 */
#define FREE 0
#define TAKEN 10
#define OPEN 20
#define CLOSED 30
#define KIND(v) ((v) / 10 * 10)

byte owner[2] = NOBODY;		/* for assertions; not in the C code */
byte published[SENDERS], delivered[SENDERS];
bool closing[SENDERS], over[SENDERS];
byte lane[2] = NOBODY;		/* sender of each rx ring of the port */
bool rung[2];			/* bits of the doorbell: idle.pml */

inline put_open(s, r)
{
#ifdef OPEN_RELAXED
	store(s, STATE(r), OPEN)
#else
	release(s, STATE(r), OPEN)
#endif
}

proctype sender(byte s)
{
	byte r = 0, was;

	{
		do
		:: r < RINGS ->
#ifdef TAKES_PLAIN
			was = LOAD(s, STATE(r));
			if
			:: was == FREE ->
				atomic {
					release(s, STATE(r), TAKEN + s + 1);
					assert(owner[r] == NOBODY);
					owner[r] = s
				};
				break
			:: else -> r++
			fi
#else
			atomic {
				waiting[OF(s, STATE(r))] == 0 ->
				if
				:: mem[STATE(r)] == FREE ->
#ifdef NO_PID
					mem[STATE(r)] = TAKEN;
#else
					mem[STATE(r)] = TAKEN + s + 1;
#endif
					assert(owner[r] == NOBODY);
					assert(mem[SLOT(r)] == 0);
					owner[r] = s;
					break
				:: else -> r++
				fi
			}
#endif
		:: else -> goto out	/* -ENOSPC: the sender gives up */
		od;
#ifdef NO_MEMORY
		if
		:: atomic {
			owner[r] = NOBODY;
			release(s, STATE(r), FREE);
			goto out
		}
		:: true
		fi;
#endif
#ifdef OPEN_EARLY
		put_open(s, r);
		store(s, WHO(r), s + 1);
#else
		store(s, WHO(r), s + 1);
		put_open(s, r);
#endif
		atomic { FENCED(s) -> rung[r] = true };
		atomic { release(s, SLOT(r), s + 1); published[s] = 1 };
		/* near_close() */
#ifdef CLOSED_FIRST
		closing[s] = true;
#endif
		atomic { FENCED(s) -> release(s, STATE(r), CLOSED) };
		atomic { FENCED(s) -> rung[r] = true };
#ifndef CLOSED_FIRST
		closing[s] = true;
#endif
out:
		skip
	} unless { dead[s] };
	over[s] = true
}

/* near_ring_free() */
inline free_ring(r)
{
#ifdef FREE_FIRST
	atomic { owner[r] = NOBODY; release(PORT, STATE(r), FREE) };
	FENCED(PORT);
	mem[SLOT(r)] = 0
#else
#ifndef NO_CLEAR
	mem[SLOT(r)] = 0;
#endif
	atomic { owner[r] = NOBODY; release(PORT, STATE(r), FREE) }
#endif
}

inline deliver(r, s)
{
	d_step {
		if
		:: LOAD(PORT, SLOT(r)) && !delivered[s] ->
			assert(LOAD(PORT, SLOT(r)) == s + 1);
			delivered[s] = 1
		:: else
		fi
	}
}

/* near_peer_end(): the rx ring is empty */
inline end_lane(r)
{
	s = lane[r];
#ifndef NO_DRAIN
	deliver(r, s);
#endif
	assert(delivered[s] == published[s]);
	lane[r] = NOBODY;
	free_ring(r);
	s = 0
}

/* near_doorbell_handle() */
inline ring_rang(r)
{
	is = KIND(LOAD(PORT, STATE(r)));
	if
	:: lane[r] == NOBODY && (is == OPEN || is == CLOSED) ->
		assert(LOAD(PORT, WHO(r)) == owner[r] + 1);
		lane[r] = owner[r]
	:: else
	fi;
	if
	:: lane[r] != NOBODY && is == CLOSED -> end_lane(r)
	:: else
	fi;
	is = 0
}

/*
 * near_claim_abandoned(), as one step: it loads the state, checks the process, and
 * loads the state again, which must be the same. A process that is dead cannot change
 * the state.
 */
#define DEAD_CLAIM(r) (KIND(LOAD(PORT, STATE(r))) == TAKEN && \
	LOAD(PORT, STATE(r)) != TAKEN && \
	dead[LOAD(PORT, STATE(r)) % 10 - 1] && \
	FENCED(LOAD(PORT, STATE(r)) % 10 - 1))

/* near_rings_check(): claims without an rx ring. No peer attaches twice here, so the
 * port has no ring of a gone peer. */
inline look(r)
{
	if
	:: lane[r] == NOBODY && DEAD_CLAIM(r) -> free_ring(r)
	:: lane[r] == NOBODY && !DEAD_CLAIM(r) &&
	   KIND(LOAD(PORT, STATE(r))) >= OPEN -> ring_rang(r)
	fi
}

/*
 * near_port_reap(): a pidfd reports an exit, or the mark of a closed port reports a
 * close
 */
#define ENDS(r) (lane[r] != NOBODY && \
	((dead[lane[r]] && FENCED(lane[r])) || closing[lane[r]]))

proctype port()
{
	byte s, is;

	do
	:: rung[0] -> rung[0] = false; ring_rang(0)
	:: lane[0] != NOBODY && !delivered[lane[0]] && LOAD(PORT, SLOT(0)) ->
		deliver(0, lane[0])
	:: ENDS(0) -> end_lane(0)
#ifndef NO_TICK
	:: look(0)
#endif
#if RINGS == 2
	:: rung[1] -> rung[1] = false; ring_rang(1)
	:: lane[1] != NOBODY && !delivered[lane[1]] && LOAD(PORT, SLOT(1)) ->
		deliver(1, lane[1])
	:: ENDS(1) -> end_lane(1)
#ifndef NO_TICK
	:: look(1)
#endif
#endif
	:: over[0] && over[1] && FENCED(0) && FENCED(1) && FENCED(PORT) &&
	   mem[STATE(0)] == FREE && mem[STATE(1)] == FREE -> break
	od;
	assert(owner[0] == NOBODY && owner[1] == NOBODY);
	assert(mem[SLOT(0)] == 0 && mem[SLOT(1)] == 0);
	assert(delivered[0] == published[0] && delivered[1] == published[1])
}

init {
	atomic {
		mortal[0] = true;
#ifndef TWO
		mortal[1] = true;
		run killer(1);
#endif
		run processor(0);
		run processor(1);
		run processor(PORT);
		run killer(0);
		run sender(0);
		run sender(1);
		run port()
	}
}
