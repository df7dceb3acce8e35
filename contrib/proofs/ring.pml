/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Laps of a ring: 4 slots, 8 cache lines of data, messages of 0 or 3 lines. The consumer
 * publishes its heads after every second slot and every second line (a quarter of the
 * lines). There are 2 lap numbers; the C code has 65,536.
 *
 * Asserted: messages arrive in order, each once, with the written contents; both ends
 * compute the same position of a message's data. All slots that a producer published
 * before it was killed arrive. A producer that waits for space for ever is an invalid
 * end state.
 *
 * Lines for ./run, which explains their keys:
 * C: link/ring.h near_data_max near_tx_slot near_tx_data near_tx_publish
 * C: link/ring.h near_rx_ready near_rx_data near_rx_release_slot near_rx_release
 * C: link/ring.c near_tx_reload near_tx_init near_rx_init
 *
 * LARGE: up to 2,600,000 states
 * WITH SIZES: messages of 1 line, too.
 * WITH DIES: the producer may be killed at any step.
 * MUTANT PUBLISH_FIRST: the slot is published before its data are written
 * MUTANT WORD_RELAXED: as PUBLISH_FIRST, because the two stores are reordered
 * MUTANT NO_LAP: the lap is not counted
 * MUTANT NO_SLOT_CHECK: the producer does not check that a slot is free
 * MUTANT NO_DATA_CHECK: the producer does not check that lines are free
 * MUTANT HEAD_EARLY: the consumer releases a slot before it has read it
 * MUTANT DATA_EARLY: the consumer releases lines before it has read them
 * MUTANT NO_WRAP: the consumer does not wrap where the producer does
 * MUTANT TOO_LONG SIZES: messages of more than 3/8 of the lines
 * MUTANT NO_DRAIN DIES: the consumer ignores the slots of a killed producer
 *
 * Not modeled: resizes (resize.pml), the need-doorbell flag (idle.pml).
 */
#define MESSAGES 6
#define MASK 3
#define DSIZE 8
#define WORD(i) (i)		/* a slot's word: lap, and lines of the message */
#define HEAD 4
#define DHEAD 5
#define DATA(i) (6 + (i))
#define WORDS 14
#define THREADS 2
#define DEPTH 5
#define PRODUCER 0
#define CONSUMER 1
#ifdef WORD_RELAXED
#define PASSES PASS(0) PASS(1) PASS(2) PASS(3)
#else
/* no store overtakes another one, which reduces the number of states */
#define PASSES
#endif
#include "memory.pml"

/* two suffice: a slot must differ from that of the previous lap only */
#define LAPS 2
#define NEXT(lap) (((lap) + 1) % LAPS)

byte sent, got;

inline data()
{
	atomic {
		i = 0;
		do
		:: i < size -> store(PRODUCER, DATA(at + i), sent + 1); i++
		:: else -> break
		od;
		i = 0
	}
}

inline publish()
{
#ifdef WORD_RELAXED
	store(PRODUCER, WORD(tail & MASK), lap * 8 + size)
#else
	release(PRODUCER, WORD(tail & MASK), lap * 8 + size)
#endif
}

proctype producer()
{
	byte tail, head, dtail, dbase, dhead, lap = 1, size, at, end, i;

	{
		do
		:: sent < MESSAGES ->
			if
			:: size = 0
#ifdef SIZES
			:: size = 1
#endif
			:: size = 3
#ifdef TOO_LONG
			:: size = 5
#endif
			fi;
#ifndef NO_SLOT_CHECK
			do
			:: tail - head > MASK && LOAD(PRODUCER, HEAD) != head ->
				head = LOAD(PRODUCER, HEAD)
			:: tail - head <= MASK -> break
			od;
#endif
			atomic {
				at = dtail - dbase;
				end = dtail + size;
				if
				:: at + size > DSIZE ->
					if
					:: at > DSIZE -> dbase = dbase + DSIZE; at = at - DSIZE
					:: else
					fi;
					if
					:: at + size > DSIZE -> end = end + DSIZE - at; at = 0
					:: else
					fi
				:: else
				fi
			};
#ifndef NO_DATA_CHECK
			do
			:: size && end - dhead > DSIZE && LOAD(PRODUCER, DHEAD) != dhead ->
				dhead = LOAD(PRODUCER, DHEAD)
			:: !size || end - dhead <= DSIZE -> break
			od;
#endif
			/* a message without data uses no lines */
			if
			:: size -> dtail = end
			:: else
			fi;
#ifdef PUBLISH_FIRST
			publish();
			FENCED(PRODUCER);
			data();
#else
			data();
			publish();
#endif
			atomic {
				sent++;
				tail++;
				lap = ((tail & MASK) -> lap : NEXT(lap));
#ifdef NO_LAP
				lap = 1;
#endif
				size = 0; at = 0; end = 0
			}
		:: else -> break
		od
	} unless { dead[PRODUCER] }
}

inline release_slot()
{
	head++;
	lap = ((head & MASK) -> lap : NEXT(lap));
#ifdef NO_LAP
	lap = 1;
#endif
	if
	:: (head & 1) == 0 -> release(CONSUMER, HEAD, head)
	:: else
	fi
}

inline release_data()
{
	dhead = dnext;
	if
	:: dhead - dpublished >= DSIZE / 4 ->
		release(CONSUMER, DHEAD, dhead);
		dpublished = dhead
	:: else
	fi
}

proctype consumer()
{
	byte head, dhead, dbase, dnext, dpublished, lap = 1, at, i, size, slot;

	do
	:: LOAD(CONSUMER, WORD(head & MASK)) / 8 == lap ->
		slot = head & MASK;
#ifdef HEAD_EARLY
		release_slot();
#endif
		atomic {
			size = LOAD(CONSUMER, WORD(slot)) % 8;
			at = dhead - dbase;
			if
#ifndef NO_WRAP
			:: size && at + size > DSIZE ->
				dbase = dbase + DSIZE;
				dhead = dbase;
				at = 0
#endif
			:: else -> at = at % DSIZE
			fi;
			dnext = dhead + size
		};
#ifdef DATA_EARLY
		release_data();
#endif
		atomic {
			do
			:: i < size ->
				assert(LOAD(CONSUMER, DATA((at + i) % DSIZE)) == got + 1);
				i++
			:: else -> break
			od;
			got++
		};
		assert(got <= sent + 1);
#ifndef HEAD_EARLY
		release_slot();
#endif
#ifndef DATA_EARLY
		release_data();
#endif
		atomic { i = 0; at = 0; size = 0; slot = 0 }
	:: got == MESSAGES -> break
	/* near_peer_drained(): the producer has failed, and no slot is left */
#ifdef NO_DRAIN
	:: dead[PRODUCER] && FENCED(PRODUCER) -> break
#else
	:: dead[PRODUCER] && FENCED(PRODUCER) && LOAD(CONSUMER, WORD(head & MASK)) / 8 != lap ->
		break
#endif
	od;
	assert(got >= sent)
}

init {
	atomic {
#ifdef DIES
		mortal[PRODUCER] = true;
		run killer(PRODUCER);
#endif
		run processor(PRODUCER);
		run processor(CONSUMER);
		run producer();
		run consumer()
	}
}
