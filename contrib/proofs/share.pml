/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Cooperative copy: both ends copy one message, in steps that they claim from its two
 * ends, and the receiver gives the buffer away when all is over. Two messages, one after
 * the other, through the same words. A step that the sender writes may fail, and it may be
 * killed at any step; a read may fail, which ends the round.
 *
 * Asserted: a step is copied by one of the two; each is, before the buffer is given away
 * as received; the sender writes into no buffer that was given away. A receiver that waits
 * for a sender that lives is an invalid end state.
 *
 * C: msg/share.h near_share_begin near_share_claim near_share_end near_share_wrote
 * C: msg/share.h near_share_over
 * C: msg/large.h near_tx_share_over
 * C: msg/large_share.c near_tx_offer near_tx_push near_tx_share
 * C: msg/large_share.c near_rx_offer near_rx_share_end near_rx_share_steps
 * C: msg/large_share.c near_rx_share_over near_rx_share near_rx_share_stop
 *
 * MUTANT CLAIM_PLAIN: a claim is a load and a store
 * MUTANT END_PLAIN: so is the end of the claims
 * MUTANT NO_ROUND: the sender claims whatever the round is
 * MUTANT NO_WAIT: the receiver does not wait for what the sender has claimed
 * MUTANT WROTE_FIRST: the sender says that a step is written before it is
 * MUTANT NO_WROTE_ROUND: what was written in another round stays, and is believed
 * MUTANT NO_FAILED: a sender whose write fails does not say so
 *
 * Not here: a sender that is stopped amid a write while the receiver's port closes, which
 * waits for a second (near_rx_share_stop() says so).
 */
#define ROUNDS 2
#define STEPS 3
#define CLAIMS 0		/* round 16, the sender's 4, the receiver's 1 */
#define WROTE 1			/* round 16, failed 8, steps */
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

chan slots = [ROUNDS] of { byte };	/* SHARE, of that round */
bool given[ROUNDS + 1], failed[ROUNDS + 1];
byte copied[(ROUNDS + 1) * STEPS];
#define COPIED(r, i) copied[(r) * STEPS + (i)]

#ifdef NO_ROUND
#define SAME(v, r) ROUND(v)
#else
#define SAME(v, r) (ROUND(v) == (r))
#endif

/* n: how many it has claimed before, or STEPS: there are none */
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
		FENCED(RECEIVER);	/* the slot is released, too */
		slots!r;
		done = 0;
		do
		:: claim(RECEIVER, r, 1);
			if
			:: n == STEPS -> break
			:: else ->
				pull(done);
				done++
			:: n < STEPS -> bad = true; break	/* it cannot be read */
			fi
		od;
		/* near_share_end() */
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
		/* what the sender has not written is read */
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
