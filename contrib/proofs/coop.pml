/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Cooperative copy: sender and receiver copy a message in steps. The receiver claims
 * steps from the start of the message and the sender from its end, and the receiver
 * completes the receive when all steps are done. Two messages use the same words in
 * turn. A write of the sender may fail, and the sender may be killed at any step. A read
 * of the receiver may fail, which ends the round.
 *
 * Asserted: each step is copied by one of the two, before the receive completes; after
 * that the sender does not write into the buffer. A receiver that waits for a live
 * sender forever is an invalid end state.
 *
 * Lines for ./run, which explains their keys:
 * C: msg/coop.h near_coop_begin near_coop_take near_coop_end near_coop_wrote
 * C: msg/coop.h near_coop_sender_ended
 * C: msg/large.h near_tx_coop_finish
 * C: msg/large_coop.c near_tx_coop_requested near_tx_push near_tx_coop
 * C: msg/large_coop.c near_rx_coop_request near_rx_coop_end near_rx_coop_steps
 * C: msg/large_coop.c near_rx_coop_finish near_rx_coop near_rx_coop_stop
 *
 * MUTANT CLAIM_PLAIN: a claim is a load and a store
 * MUTANT END_PLAIN: the end of the claims is a load and a store
 * MUTANT NO_ROUND: the sender claims in any round
 * MUTANT NO_WAIT: the receiver does not wait for the sender's claims
 * MUTANT WROTE_FIRST: the sender reports a step before it is written
 * MUTANT NO_WROTE_ROUND: the receiver counts steps written in another round
 * MUTANT NO_FAILED: the sender does not report a failed write
 *
 * Not modeled: a sender that is stopped during a write while the receiver's port closes or
 * disconnects the sender. The port then waits for a second (near_rx_coop_stop()).
 */
#define ROUNDS 2
#define STEPS 3
/* 16 * round + 4 * sender's steps + receiver's steps */
#define CLAIMS 0
#define WROTE 1			/* 16 * round + 8 * failed + steps */
#define WORDS 2
#define THREADS 2
#define DEPTH 3
#define SENDER 0
#define RECEIVER 1
#define PASSES PASS(1)
#include "memory.pml"

#define ROUND(v) ((v) / 16)
#define HIGH(v) ((v) / 4 % 4)
#define LOW(v) ((v) % 4)

chan slots = [ROUNDS] of { byte };	/* NEAR_KIND_COOP slots: their round */
bool given[ROUNDS + 1], failed[ROUNDS + 1];
byte copied[(ROUNDS + 1) * STEPS];
#define COPIED(r, i) copied[(r) * STEPS + (i)]

#ifdef NO_ROUND
#define SAME(v, r) ROUND(v)
#else
#define SAME(v, r) (ROUND(v) == (r))
#endif

/* Claims a step. n: number of steps claimed before; STEPS: none is left */
inline claim(t, r, one)
{
#ifdef CLAIM_PLAIN
	word = LOAD(t, CLAIMS);
	if
	:: SAME(word, r) && HIGH(word) + LOW(word) < STEPS ->
		n = (one == 4 -> HIGH(word) : LOW(word));
		release(t, CLAIMS, word + one);
		FENCED(t)
	:: else -> n = STEPS
	fi;
	word = 0
#else
	atomic {
		FENCED(t) ->
		if
		:: SAME(mem[CLAIMS], r) && HIGH(mem[CLAIMS]) + LOW(mem[CLAIMS]) < STEPS ->
			n = (one == 4 -> HIGH(mem[CLAIMS]) : LOW(mem[CLAIMS]));
			mem[CLAIMS] = mem[CLAIMS] + one
		:: else -> n = STEPS
		fi
	}
#endif
}

proctype sender()
{
	byte r, n, wrote, word;

	{
		do
		:: slots?r ->
			wrote = 0;
			do
			:: claim(SENDER, r, 4);
				if
				:: n == STEPS -> break
				:: else
				fi;
#ifdef WROTE_FIRST
				wrote++;
				release(SENDER, WROTE, r * 16 + wrote);
#endif
				if
				:: d_step {
					/* process_vm_writev() */
					assert(!given[r]);
					COPIED(r, STEPS - 1 - n) =
						COPIED(r, STEPS - 1 - n) + 1;
					assert(COPIED(r, STEPS - 1 - n) == 1)
				};
#ifndef WROTE_FIRST
					wrote++;
					release(SENDER, WROTE, r * 16 + wrote)
#endif
				:: true ->
#ifndef NO_FAILED
					release(SENDER, WROTE, r * 16 + 8 + wrote);
#endif
					break
				fi
			od;
			if
			:: r == ROUNDS -> break
			:: else
			fi
		od
	} unless { dead[SENDER] }
}

#ifdef NO_WROTE_ROUND
#define OF_ROUND(v, r) true
#else
#define OF_ROUND(v, r) (ROUND(v) == (r))
#endif
#define OVER(v) (OF_ROUND(v, r) && ((v) / 8 % 2 || (v) % 8 >= claimed))

inline pull(i)
{
	d_step {
		COPIED(r, i) = COPIED(r, i) + 1;
		assert(COPIED(r, i) == 1)
	}
}

proctype receiver()
{
	byte r, n, claimed, wrote, word, done;
	bool bad;

	do
	:: r < ROUNDS ->
		r++;
#ifndef NO_WROTE_ROUND
		store(RECEIVER, WROTE, r * 16);
#endif
		release(RECEIVER, CLAIMS, r * 16);
		FENCED(RECEIVER);	/* also for the release of the slot */
		slots!r;
		done = 0;
		do
		:: claim(RECEIVER, r, 1);
			if
			:: n == STEPS -> break
			:: else ->
				pull(done);
				done++
			:: n < STEPS -> bad = true; break	/* the read fails */
			fi
		od;
		/* near_coop_end() */
#ifdef END_PLAIN
		claimed = HIGH(LOAD(RECEIVER, CLAIMS));
		release(RECEIVER, CLAIMS, 0);
		FENCED(RECEIVER);
#else
		atomic {
			FENCED(RECEIVER) ->
			claimed = HIGH(mem[CLAIMS]);
			mem[CLAIMS] = 0
		};
#endif
#ifdef NO_WAIT
		wrote = LOAD(RECEIVER, WROTE) % 8;
#else
		if
		:: !claimed
		:: claimed && OVER(LOAD(RECEIVER, WROTE)) ->
			wrote = LOAD(RECEIVER, WROTE) % 8
		:: claimed && dead[SENDER] && FENCED(SENDER) && !OVER(LOAD(RECEIVER, WROTE)) ->
			bad = true
		fi;
#endif
		/* the receiver reads the steps that the sender has not written */
		do
		:: !bad && done < STEPS - wrote -> pull(done); done++
		:: else -> break
		od;
		atomic {
			given[r] = true;
			assert(bad || (COPIED(r, 0) == 1 && COPIED(r, 1) == 1 &&
				       COPIED(r, 2) == 1));
			wrote = 0; claimed = 0; n = 0; bad = false; done = 0
		}
	:: else -> break
	od
}

init {
	atomic {
		mortal[SENDER] = true;
		run processor(SENDER);
		run processor(RECEIVER);
		run killer(SENDER);
		run sender();
		run receiver()
	}
}
