/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations: the initiator lends memory, a device of the target copies, and the
 * target replies. Two operations use the same chunk in turn. Either end may close at any
 * time, or be killed at any step; a device stops when its process is killed.
 *
 * Asserted: no device copies after the application may reuse the memory: after the reply,
 * after an error, and after the initiator has closed. An initiator that waits forever is
 * an invalid end state.
 *
 * Lines for ./run, which explains their keys:
 * C: rma/loan.c near_loan_issue near_loan_answered near_loan_copy near_loan_serve
 * C: rma/loan.c near_loan_end near_loan_revoke near_loans_revoke
 * C: rma/stage.c near_stage_close
 *
 * MUTANT TAKE_PLAIN: the target takes a loan with a load and a store
 * MUTANT REVOKE_PLAIN: the initiator revokes a loan with a load and a store
 * MUTANT NO_REVOKE: the initiator closes without revoking
 * MUTANT NO_WAIT: the initiator does not wait for the copy
 * MUTANT OPEN_LATE: the initiator stores the loan's state after the request
 * MUTANT ENDED_FIRST: the target ends the loan before the copy has ended
 * MUTANT REPLY_FIRST: the target replies before the copy has ended
 * MUTANT NO_ENDED: the target does not end a loan whose copy it could not start
 * MUTANT CLOSE_FIRST: the target closes before the copy has ended
 *
 * Not modeled: a target that is stopped while the initiator closes. The initiator then
 * waits for NEAR_STOP_MS at most.
 */
#define LOANS 2
#define STATE 0			/* enum near_loan_state */
#define REQUEST 1		/* slots of the rings: number of the operation */
#define REPLY 2
#define WORDS 3
#define THREADS 2
#define DEPTH 3
#define INITIATOR 0
#define TARGET 1
#define PASSES PASS(STATE)
#include "memory.pml"

#define OPEN 0
#define TAKEN 1
#define ENDED 2
#define REVOKED 3

byte copying;			/* operation that the device executes */
bool closed;			/* the target has closed */
bool given[LOANS + 1];		/* the application may reuse the memory */

inline near_loan_revoke()
{
#ifdef REVOKE_PLAIN
	word = LOAD(INITIATOR, STATE);
	if
	:: word == OPEN -> release(INITIATOR, STATE, REVOKED)
	:: else
	fi;
#elif !defined(NO_REVOKE)
	atomic {
		FENCED(INITIATOR) ->
		word = mem[STATE];
		if
		:: word == OPEN -> mem[STATE] = REVOKED
		:: else
		fi
	};
#endif
#ifndef NO_WAIT
	if
	:: word == TAKEN ->
		(LOAD(INITIATOR, STATE) != TAKEN || dead[TARGET])
	:: else
	fi
#endif
}

proctype initiator()
{
	byte op, word;

	{
		do
		:: op < LOANS ->
			op++;
#ifdef OPEN_LATE
			release(INITIATOR, REQUEST, op);
			store(INITIATOR, STATE, OPEN);
#else
			store(INITIATOR, STATE, OPEN);
			release(INITIATOR, REQUEST, op);
#endif
			/* the reply, an error in its place, or the initiator closes */
			if
			:: LOAD(INITIATOR, REPLY) == op -> given[op] = true
			:: dead[TARGET] || closed -> given[op] = true; break
			:: near_loan_revoke();
				given[op] = true;
				break
			fi
		:: else -> break
		od
	} unless { dead[INITIATOR] }
}

/* Each step reads or writes the memory. */
proctype device()
{
end:
	do
	:: atomic { copying && !dead[TARGET] -> assert(!given[copying]) }
	:: atomic { copying && !dead[TARGET] -> assert(!given[copying]); copying = 0 }
	:: atomic { copying && dead[TARGET] -> copying = 0 }
	od
}

/*
 * Sets taken: true if the device now copies; false if the loan was revoked before, or
 * if its copy could not start
 */
inline near_loan_copy()
{
#ifdef TAKE_PLAIN
	taken = LOAD(TARGET, STATE) == OPEN;
	if
	:: taken -> release(TARGET, STATE, TAKEN)
	:: else
	fi;
#else
	atomic {
		FENCED(TARGET) ->
		taken = mem[STATE] == OPEN;
		if
		:: taken -> mem[STATE] = TAKEN
		:: else
		fi
	};
#endif
	if
	:: taken -> copying = op
	:: taken -> taken = false;	/* the copy does not start */
#ifndef NO_ENDED
		release(TARGET, STATE, ENDED)
#endif
	:: !taken
	fi
}

/* Waits for the copy, in polls or when the target closes. */
inline near_loan_end()
{
#ifdef ENDED_FIRST
	release(TARGET, STATE, ENDED);
	!copying
#else
	!copying;
	release(TARGET, STATE, ENDED)
#endif
}

proctype target()
{
	byte op;
	bool taken;

	{
		do
		:: LOAD(TARGET, REQUEST) == op + 1 ->
			op++;
			near_loan_copy();
#ifdef REPLY_FIRST
			release(TARGET, REPLY, op);
#endif
			if
			:: taken -> near_loan_end()
			:: !taken
#ifdef CLOSE_FIRST
			:: taken -> break
#endif
			:: taken -> near_loan_end(); break	/* closes */
			fi;
#ifndef REPLY_FIRST
			release(TARGET, REPLY, op)
#endif
		:: true -> break
		:: op == LOANS -> break
		od;
		FENCED(TARGET) -> closed = true
	} unless { dead[TARGET] }
}

init {
	atomic {
		mortal[INITIATOR] = true;
		mortal[TARGET] = true;
		run processor(INITIATOR);
		run processor(TARGET);
		run killer(INITIATOR);
		run killer(TARGET);
		run device();
		run initiator();
		run target()
	}
}
