/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The need-doorbell flag of an idle ring, and the doorbell. One or two producers fill
 * their rings; the consumer polls active rings and makes them idle. It must consume
 * every published slot: a consumer that has no active ring while a slot is full is an
 * invalid end state. If there is one producer, it may be killed at any step.
 *
 * Lines for ./run, which explains their keys:
 * C: link/ring.h near_tx_publish near_tx_need_doorbell near_tx_polled
 * C: link/ring.c near_tx_fence
 * C: link/peer.c near_doorbell_ring
 * C: link/barrier.c near_barrier_register near_barrier_ready
 * C: link/port.c near_port_barrier
 * C: link/rx_ring.c near_rx_ring_activate near_rx_ring_deactivate near_doorbell_handle near_port_doorbells
 * C: link/rx_ring.c near_rx_rings_deactivate near_port_sweep
 * C: link/alive.c near_peer_drained near_port_reap
 *
 * WITH TWO: two producers, one word of the doorbell.
 * WITH YET: the producer's process registers for membarrier while the producer runs.
 * WITH FENCE: membarrier is not permitted, and the producers fence.
 * WITH FAILS: membarrier fails in some calls.
 * MUTANT NO_BARRIER: the consumer only fences
 * MUTANT NO_LOOK: the consumer does not check the ring again
 * MUTANT FLAG_LATE: the flag is set after the barrier
 * MUTANT BELL_SWAPPED TWO: a producer sets the bit of the word before the ring's bit
 * MUTANT BITS_FIRST TWO: the consumer clears the rings' bits before the bit of the word
 * MUTANT READY_EARLY YET: a process reports its registration before it is registered
 * MUTANT NO_YET YET: a process that is not registered does not fence
 * MUTANT NO_FENCE FENCE: a process does not fence where membarrier is not permitted
 * MUTANT BELIEVES FAILS: the consumer ignores the failure of membarrier
 * MUTANT NO_HEAT: the idle ring of a failed producer is not searched for slots
 *
 * Not modeled: more than one word of doorbell bits; 16-bit laps (ring.pml).
 */
#ifdef TWO
#define P 2
#define N 1		/* messages of each producer */
#else
#define P 1
#define N 2
#endif
#define SLOT(p) (p)	/* number of published slots */
#define COLD(p) (2 + (p))
#define BELL 4
#define BELL_WORDS 5
#define READY(p) (6 + (p))
#define WORDS 8
#define THREADS 3
#define DEPTH 3
#define CONSUMER 2
#ifdef TWO
#define PASSES PASS(2) PASS(3)	/* COLD */
#else
#define PASSES PASS(2)
#endif
#include "memory.pml"

#ifdef YET
bool registered;	/* the kernel's record of the registration */
#else
bool registered = true;
#endif
byte sent[2], got[2], bits;
bool hot[2] = true, raised[2], ended[2];

/* near_barrier_register(), in a thread of its own */
proctype registers(byte p)
{
#ifdef READY_EARLY
	release(p, READY(p), 1);
	FENCED(p);
	registered = true
#else
	registered = true;
	release(p, READY(p), 1)
#endif
}

inline rmw_or(t, w, bit_)
{
	atomic { FENCED(t) -> mem[w] = mem[w] | (bit_) }
}

inline bell(p)
{
#ifdef BELL_SWAPPED
	rmw_or(p, BELL_WORDS, 1);
	rmw_or(p, BELL, 1 << p)
#else
	rmw_or(p, BELL, 1 << p);
	rmw_or(p, BELL_WORDS, 1)
#endif
}

proctype producer(byte p)
{
	bool yet;

	{
#ifdef YET
		yet = !LOAD(p, READY(p));
#endif
		do
		:: sent[p] < N ->
			atomic { release(p, SLOT(p), sent[p] + 1); sent[p]++ }
#ifdef FENCE
#ifndef NO_FENCE
			FENCED(p);
#endif
#else
			if
			:: yet ->
				yet = !LOAD(p, READY(p));
#ifndef NO_YET
				FENCED(p)
#endif
			:: else
			fi;
#endif
			if
			:: LOAD(p, COLD(p)) -> bell(p)
			:: else
			fi
		:: else -> break
		od
	} unless { dead[p] }
}

inline heat(p)
{
	store(CONSUMER, COLD(p), 0);
	hot[p] = true
}

inline rang()
{
#ifdef BITS_FIRST
	atomic { FENCED(CONSUMER) -> bits = mem[BELL]; mem[BELL] = 0 };
	atomic { FENCED(CONSUMER) -> mem[BELL_WORDS] = 0 };
#else
	atomic { FENCED(CONSUMER) -> mem[BELL_WORDS] = 0 };
	atomic { FENCED(CONSUMER) -> bits = mem[BELL]; mem[BELL] = 0 };
#endif
	atomic { if :: bits & 1 -> heat(0) :: else fi };
#ifdef TWO
	atomic { if :: bits & 2 -> heat(1) :: else fi };
#endif
	bits = 0
}

inline raise(p)
{
	atomic {
		if
		:: hot[p] && LOAD(CONSUMER, SLOT(p)) == got[p] ->
#ifndef FLAG_LATE
			release(CONSUMER, COLD(p), 1);
#endif
			raised[p] = true
		:: true
		fi
	}
}

inline cool(p)
{
	atomic {
		if
		:: raised[p] ->
#ifdef FLAG_LATE
			release(CONSUMER, COLD(p), 1);
#endif
			if
#ifndef NO_LOOK
			:: LOAD(CONSUMER, SLOT(p)) != got[p] -> heat(p)
#endif
			:: !seen -> heat(p)
			:: else -> hot[p] = false
			fi;
			raised[p] = false
		:: else
		fi
	}
}

inline barrier()
{
	FENCED(CONSUMER);
#ifdef FENCE
	seen = true
#else
	if
#ifdef FAILS
	:: seen = false
#endif
#ifdef NO_BARRIER
	:: seen = true
#else
	:: !registered || BARRIER(0) ->
		seen = true;
#ifdef TWO
		if :: BARRIER(1) fi
#endif
#endif
	fi;
#ifdef BELIEVES
	seen = true;
#endif
	FENCED(CONSUMER)
#endif
}

inline take(p)
{
	d_step {
		hot[p] && LOAD(CONSUMER, SLOT(p)) != got[p] -> got[p]++
	}
}

/* near_port_reap(), near_peer_drained(): consumes the failed producer's slots first */
inline reap(p)
{
	atomic {
		dead[p] && !ended[p] && FENCED(p) ->
#ifndef NO_HEAT
		heat(p);
#endif
		do
		:: take(p)
		:: else -> break
		od;
		assert(got[p] == mem[SLOT(p)]);
		ended[p] = true
	}
}

#define DONE(p) (got[p] == N || ended[p])
#ifdef TWO
#define ALL_DONE (DONE(0) && DONE(1))
#define ANY_HOT (hot[0] || hot[1])
#else
#define ALL_DONE DONE(0)
#define ANY_HOT hot[0]
#endif

proctype consumer()
{
	bool seen;

	do
	:: LOAD(CONSUMER, BELL_WORDS) -> rang()
	:: take(0)
	:: ANY_HOT && !ALL_DONE ->
		raise(0);
#ifdef TWO
		raise(1);
#endif
		if
		:: raised[0] || raised[1] ->
			barrier();
			cool(0);
#ifdef TWO
			cool(1);
#endif
			seen = false
		:: else
		fi
#ifdef TWO
	:: take(1)
#else
	:: reap(0)
#endif
	:: ALL_DONE -> break
	od
}

init {
	atomic {
		run processor(0);
		run processor(CONSUMER);
		run producer(0);
#ifdef TWO
		run processor(1);
		run producer(1);
#else
		mortal[0] = true;
		run killer(0);
#endif
#ifdef YET
		run registers(0);
#endif
		run consumer()
	}
}
