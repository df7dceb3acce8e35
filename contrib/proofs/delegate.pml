/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated one-sided operations: operations 1 and 2 are in slots of a ring. The target
 * executes the operations that it reaches. After a timeout the initiator revokes the
 * others, and executes them itself. Initiator or target may be killed at any step.
 *
 * Asserted: each operation is executed once, by initiator or target, 1 before 2; an
 * operation that is reported as complete was executed; the target passes a slot only
 * after the slot's operation was executed or has failed. If both live, all operations
 * are executed, and a thread that waits for ever is an invalid end state.
 *
 * Lines for ./run, which explains their keys:
 * C: rma/delegate.h near_deleg_execute near_deleg_done near_deleg_add
 * C: rma/delegate.c near_delegs_change near_deleg_direct
 * C: rma/delegate.c near_delegs_revoke
 * C: rma/delegate.c near_deleg_counted near_delegs_count near_delegs_drained
 * C: rma/serve.c near_small_start near_serve_small near_rma_serve_slot
 * C: link/port.c near_port_barrier
 *
 * WITH DIES: the initiator may be killed.
 * WITH GONE: the target may be killed.
 * MUTANT NO_BARRIER: between its store of BUSY and its load of doing, the initiator
 * fences, but calls no membarrier
 * MUTANT NO_SECOND_LOOK: after its store of doing the target does not load the slot again
 * MUTANT DOING_LATE: the target stores doing after the second load of the slot
 * MUTANT NO_DOING_LOOK: the initiator does not load doing
 * MUTANT DONE_EARLY: the target counts an operation before it executes it
 * MUTANT DONE_RELAXED: as DONE_EARLY, because the two stores are reordered
 * MUTANT OVER_EARLY: the initiator stores OVER before it executes the operation
 * MUTANT NO_OPEN: a revoked operation that the initiator has not executed stays BUSY
 * MUTANT BUSY_STAYS DIES: the target waits for a failed initiator's BUSY
 *
 * Not modeled: reads (the target replies by a slot in place of done), rejected
 * operations, a resize of the ring.
 */
#define OFFERS 2
#define SLOT(n) ((n) - 1)
#define DOING 2
#define DONE 3
/* the target's memory: 1 after operation n was executed */
#define DATA(n) (3 + (n))
#define WORDS 6
#define THREADS 2
#define DEPTH 4
#define INITIATOR 0
#define TARGET 1
#ifdef DONE_RELAXED
#define PASSES PASS(2) PASS(3) PASS(4) PASS(5)
#else
#define PASSES PASS(2) PASS(4) PASS(5)	/* DOING, DATA */
#endif
#include "memory.pml"

#define OPEN 1
#define BUSY 2	/* NEAR_DELEG_REVOKED */
#define OVER 3	/* NEAR_DELEG_EXECUTED or NEAR_DELEG_FAILED */

byte does[OFFERS + 1];		/* number of starts of each operation */
byte passed;			/* slots that the target has passed */
byte ended;			/* operations reported as complete */
bool left;			/* the initiator has ended, or failed */

inline begin(n, who)
{
	d_step {
		does[n]++;
		assert(does[n] == 1);
		/* the operation of a failed initiator is skipped */
		assert(n == 1 || does[1] == 1 || dead[INITIATOR])
	}
}

/*
 * near_delegs_change(): a compare-and-swap on the slot, unless the target has
 * passed the slot
 */
inline change(n, from, to)
{
	atomic {
		FENCED(INITIATOR) ->
		if
		:: n > ended && n > mem[DONE] && mem[SLOT(n)] == from ->
			mem[SLOT(n)] = to
		:: else
		fi
	}
}

inline hold()
{
	change(1, OPEN, BUSY);
	change(2, OPEN, BUSY);
	FENCED(INITIATOR);
#ifndef NO_BARRIER
	BARRIER(TARGET);
	FENCED(INITIATOR)
#endif
}

inline unhold()
{
#ifdef NO_OPEN
	skip
#else
	change(1, BUSY, OPEN);
	change(2, BUSY, OPEN)
#endif
}

/* process_vm_writev(): the data is in the target's memory when the call returns */
inline do_it(n)
{
#ifdef OVER_EARLY
	release(INITIATOR, SLOT(n), OVER);
	FENCED(INITIATOR);
#endif
	begin(n, INITIATOR);
	atomic { FENCED(INITIATOR) -> mem[DATA(n)] = 1 };
#ifndef OVER_EARLY
	release(INITIATOR, SLOT(n), OVER);
#endif
	tell(n)
}

inline tell(n)
{
	d_step {
		assert(n == ended + 1);
		assert(LOAD(INITIATOR, DATA(n)) == 1);
		ended = n
	}
}

#define MINE(first) (LOAD(INITIATOR, DOING) < (first))
#ifdef NO_DOING_LOOK
#undef MINE
#define MINE(first) true
#endif

/* near_delegs_revoke() */
inline withdraw()
{
	first = ended + 1;
	if
	:: MINE(first) ->
		hold();
		if
		:: ended < 1 && MINE(first) -> do_it(1)
		:: else
		fi;
		if
		:: ended == 1 && MINE(first) -> do_it(2)
		:: else
		fi;
		unhold()
	:: else
	fi;
	first = 0
}

proctype initiator()
{
	byte first, tries;

	{
		do
		/* near_delegs_count() */
		:: ended < OFFERS && LOAD(INITIATOR, DONE) > ended -> tell(ended + 1)
		:: ended < OFFERS && tries < 2 -> tries++; withdraw()
		:: ended == OFFERS -> break
#ifdef GONE
		/*
		 * near_delegs_drained(): counted operations succeed, the others
		 * fail
		 */
		:: dead[TARGET] && FENCED(TARGET) && LOAD(INITIATOR, DONE) <= ended -> break
#endif
		od
	} unless { dead[INITIATOR] };
	FENCED(INITIATOR);
	left = true
}

inline count(n)
{
#ifdef DONE_RELAXED
	store(TARGET, DONE, n)
#else
	release(TARGET, DONE, n)
#endif
}

/* near_deleg_execute(), the operation, near_deleg_done() */
inline serve(n)
{
	if
	:: LOAD(TARGET, SLOT(n)) == OVER ->
		assert(does[n] == 1);
		count(n);
		passed = n
#ifdef DIES
#ifndef BUSY_STAYS
	:: LOAD(TARGET, SLOT(n)) == BUSY && dead[INITIATOR] && left ->
		count(n);
		passed = n
#endif
#endif
	:: LOAD(TARGET, SLOT(n)) == OPEN ->
#ifdef DOING_LATE
		again = LOAD(TARGET, SLOT(n));
		store(TARGET, DOING, n);
#else
		store(TARGET, DOING, n);
		again = LOAD(TARGET, SLOT(n));
#endif
		if
#ifdef NO_SECOND_LOOK
		:: true ->
#else
		:: again == OPEN ->
#endif
#ifdef DONE_EARLY
			count(n);
#endif
			begin(n, TARGET);
			store(TARGET, DATA(n), 1);
#ifndef DONE_EARLY
			count(n);
#endif
			passed = n
#ifndef NO_SECOND_LOOK
		:: else ->
			store(TARGET, DOING, n - 1)
#endif
		fi;
		again = 0
	fi
}

proctype target()
{
	byte again;

	{
		do
		:: passed == 0 -> serve(1)
		:: passed == 1 -> serve(2)
		:: passed == OFFERS -> break
		od
	} unless { dead[TARGET] };
end:
	(left && FENCED(TARGET));
#ifndef DIES
#ifndef GONE
	assert(ended == OFFERS);
	assert(mem[DATA(1)] == 1 && mem[DATA(2)] == 1)
#endif
#endif
}

init {
	atomic {
		mem[SLOT(1)] = OPEN;
		mem[SLOT(2)] = OPEN;
#ifdef DIES
		mortal[INITIATOR] = true;
#endif
#ifdef GONE
		mortal[TARGET] = true;
#endif
		run processor(INITIATOR);
		run processor(TARGET);
		run killer(INITIATOR);
		run killer(TARGET);
		run initiator();
		run target()
	}
}
