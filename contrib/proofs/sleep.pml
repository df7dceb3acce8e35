/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A sleeping thread and its wakeup. The thread calls near_woken() and near_arm(), then
 * reads the wake pipe. Two producers publish a slot each, see the need-doorbell flag,
 * ring the doorbell, and write a byte into the pipe if the port is armed. It is an
 * invalid end state if the thread sleeps while a ring has a slot, and neither a byte
 * nor a failure will wake the thread. A producer may pause at any step, because spin
 * tries all orders of steps; one producer may be killed. At the start the first
 * producer's ring is active, and the second producer's is idle.
 *
 * Lines for ./run, which explains their keys:
 * C: link/rx_ring.c near_arm near_port_doorbells near_doorbell_handle near_rx_ring_activate
 * C: link/peer.c near_doorbell_ring near_wake
 * C: link/alive.c near_woken near_wake_drain near_port_reap
 * C: link/port.c near_port_barrier
 * C: link/ring.h near_tx_publish near_tx_need_doorbell
 *
 * LARGE: up to 400,000 states
 * WITH AGAIN: one producer, which publishes three slots.
 * WITH STOP: one of the two stops at some step, for ever, and no failure is detected.
 * WITH FENCE: membarrier is not permitted, and the producers fence.
 * MUTANT NO_BARRIER: the sleeping thread fences, but calls no membarrier
 * MUTANT NO_BELL_LOOK: near_arm() does not check the doorbell
 * MUTANT NO_SLOT_LOOK: near_arm() does not check the rings
 * MUTANT ARMED_FIRST: armed is set before the flags, with the barrier in between
 * MUTANT CLEARS_FIRST STOP: a producer clears armed before it writes its byte
 * MUTANT CLEARS_ANY AGAIN: a late producer clears the value of armed of a later sleep
 * MUTANT LOADS_FIRST: a producer loads armed before it sets its bits
 * MUTANT NO_DEATHS: failures do not wake the sleeping thread
 * MUTANT NO_FENCE FENCE: the producers do not fence
 *
 * Not modeled: several threads that sleep on one port, and operations that another
 * thread of the process adds (near_port_added()). The lock of the port's owner protects
 * both. Nor is a wake pipe modeled that cannot be opened (near_wakes_repeat()).
 */
#ifdef AGAIN
#define P 1
#define N 3
#else
#define P 2
#define N 1
#endif
#define SLOT(p) (p)
#define COLD(p) (2 + (p))
#define BELL 4		/* bits of the rings; idle.pml has the word's bit, too */
#define ARMED 5
#define WORDS 6
#define THREADS 3
#define DEPTH 4
#define SLEEPER 2
/* largest number of sleeps: more than bytes and failures that wake the thread */
#define SLEEPS 8
#ifdef AGAIN
#define PASSES PASS(2) PASS(5)
#else
#define PASSES PASS(2) PASS(3) PASS(5)	/* COLD, ARMED */
#endif
#include "memory.pml"

byte sent[2], got[2], pipe, sleeps;
bool ended[2], hot[2];

/* near_doorbell_ring() */
inline bell(p)
{
#ifdef LOADS_FIRST
	FENCED(p);
	asleep = LOAD(p, ARMED);
#endif
	atomic { FENCED(p) -> mem[BELL] = mem[BELL] | (1 << p) };
#ifndef LOADS_FIRST
	asleep = LOAD(p, ARMED);
#endif
	if
	:: asleep ->
#ifndef CLEARS_FIRST
		pipe++;
#endif
		atomic {
			FENCED(p) ->
			if
#ifdef CLEARS_ANY
			:: true -> mem[ARMED] = 0
#else
			:: mem[ARMED] == asleep -> mem[ARMED] = 0
			:: else
#endif
			fi;
			asleep = 0
		}
#ifdef CLEARS_FIRST
		pipe++
#endif
	:: else
	fi
}

proctype producer(byte p)
{
	byte asleep;

	{
		do
		:: sent[p] < N ->
			atomic { release(p, SLOT(p), sent[p] + 1); sent[p]++ };
#ifdef FENCE
#ifndef NO_FENCE
			FENCED(p);
#endif
#endif
			if
			:: LOAD(p, COLD(p)) -> bell(p)
			:: else
			fi
		:: else -> break
		od
	} unless { dead[p] }
}

inline take(p)
{
	d_step {
		hot[p] && got[p] < LOAD(SLEEPER, SLOT(p)) ->
		got[p] = LOAD(SLEEPER, SLOT(p))
	}
}

inline reap(p)
{
	d_step {
		dead[p] && !ended[p] && FENCED(p) ->
		got[p] = mem[SLOT(p)];
		ended[p] = true
	}
}

#ifdef STOP
#define ALL(p) (got[p] == N || dead[p])
#define NO_DEATHS
#else
#define ALL(p) (got[p] == N || ended[p])
#endif
#define MORE(p) (hot[p] && LOAD(SLEEPER, SLOT(p)) > got[p])
#if P == 1
#define DONE ALL(0)
#define READY MORE(0)
#else
#define DONE (ALL(0) && ALL(1))
#define READY (MORE(0) || MORE(1))
#endif

inline polls()
{
	if
	:: LOAD(SLEEPER, BELL) ->
		atomic {
			FENCED(SLEEPER) ->
			bits = mem[BELL];
			mem[BELL] = 0
		};
		if :: bits & 1 -> heat(0) :: else fi;
#if P == 2
		if :: bits & 2 -> heat(1) :: else fi;
#endif
		bits = 0
	:: else
	fi;
	do
	:: take(0)
#if P == 2
	:: take(1)
#endif
	:: else -> break
	od
}

/* A failure is detected at some time, and always before the thread sleeps. */
inline woken()
{
	if
	:: atomic { pipe -> pipe = 0; store(SLEEPER, ARMED, 0) }
	:: else
	fi;
	if
	:: reap(0)
	:: else
	fi
}

inline heat(p)
{
	atomic { store(SLEEPER, COLD(p), 0); hot[p] = true }
}

/* The flag of an idle ring is set already. */
inline raise_one(p)
{
	if
	:: hot[p] -> store(SLEEPER, COLD(p), 1)
	:: else
	fi
}

inline raise()
{
	raise_one(0);
#if P == 2
	raise_one(1)
#endif
}

inline barrier()
{
	FENCED(SLEEPER);
#ifndef FENCE
#ifndef NO_BARRIER
	BARRIER(0);
#if P == 2
	BARRIER(1);
#endif
	FENCED(SLEEPER)
#endif
#endif
}

proctype sleeper()
{
	byte bits;

	do
	:: polls();
		if
		:: DONE -> break
		:: else
		fi;
		woken();
		sleeps++;
		assert(sleeps <= SLEEPS);
#ifdef ARMED_FIRST
		release(SLEEPER, ARMED, sleeps);
		barrier();
		raise();
#else
		raise();
		release(SLEEPER, ARMED, sleeps);
		barrier();
#endif
		if
#ifndef NO_BELL_LOOK
		:: LOAD(SLEEPER, BELL)
#endif
#ifndef NO_SLOT_LOOK
		:: READY
#endif
		:: else ->
			if
			:: pipe
			:: DONE		/* all consumed: the thread may sleep */
#ifndef NO_DEATHS
			:: dead[0] && !ended[0] && FENCED(0)
#endif
			fi
		fi
	od
}

init {
	atomic {
		mortal[0] = true;
		hot[0] = true;
		mem[COLD(1)] = 1;
		run processor(0);
		run processor(SLEEPER);
		run killer(0);
		run producer(0);
#if P == 2
		run processor(1);
		run producer(1);
#endif
		run sleeper()
	}
}
