/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A ring that is resized from 2 slots to 4 while messages go through it. The sender's
 * last slot in the old ring is MOVE (NEAR_KIND_RESIZE). The receiver initializes the
 * ring with the new size and answers. The sender then continues at the start of the
 * ring. The sender may be killed at any step.
 *
 * Asserted: messages arrive in order, each once, with the written contents; no slot of
 * the previous ring is received; all slots published before a failure arrive. A sender
 * that waits for ever, for a slot or for the answer, is an invalid end state.
 *
 * Lines for ./run, which explains their keys:
 * C: link/ring.h near_tx_slot near_tx_gate near_tx_open_gate near_tx_publish
 * C: link/ring.h near_rx_ready near_rx_release_slot
 * C: link/ring.c near_tx_init near_rx_init near_tx_restart near_rx_restart
 * C: link/ring.c near_tx_reload
 * C: link/resize.c near_resize_post near_resize_answer near_resize_done near_resize_step
 * C: link/ring_budget.c near_rx_ring_extend near_rx_ring_resize
 * C: msg/control.c near_control_resize
 *
 * MUTANT ANSWER_RELAXED: the answer overtakes the zeros
 * MUTANT ANSWER_FIRST: the receiver answers before it stores the zeros
 * MUTANT NO_ZERO: the old contents of the ring stay
 * MUTANT NO_HEAD: the old head stays
 * MUTANT NO_GATE: the sender continues to write after MOVE
 * MUTANT NO_COUNT: the sender accepts the answer to the previous resize
 * MUTANT NO_RESTART: the sender continues at its old position
 * MUTANT WORD_RELAXED: a slot's word overtakes its contents
 *
 * Not modeled: data rings (ring.pml), delegated operations in the ring
 * (delegate.pml).
 */
#define MESSAGES 4
#define WORD(i) (i)		/* a slot's word, stored last: lap, and MOVE's bit */
#define TAG(i) (4 + (i))
#define HEAD 8
#define SIZE 9			/* the answer: count of resizes, and new mask */
#define WORDS 10
#define THREADS 2
#define DEPTH 7
#define SENDER 0
#define PORT 1
#ifdef ANSWER_RELAXED
#define ANSWERS PASS(9)
#else
#define ANSWERS
#endif
#ifdef WORD_RELAXED
#define SLOTS PASS(0) PASS(1) PASS(2) PASS(3)
#else
#define SLOTS
#endif
#define PASSES PASS(4) PASS(5) PASS(6) PASS(7) PASS(8) SLOTS ANSWERS
#include "memory.pml"

#define MOVE 8
#define LAPS 4			/* more laps than occur; the C code has 65,536 */

byte sent;			/* number of published messages */
byte arrived;
bool ended;

proctype sender()
{
	byte tail, head, lap = 1, mask = 1, moves;
	bool posted, wants;

	{
		do
		:: sent == MESSAGES -> break
		:: sent < MESSAGES && !posted ->
			/* near_tx_slot(), near_tx_reload() */
			if
			:: tail - head > mask -> head = LOAD(SENDER, HEAD)
			:: else
			fi;
			if
			:: tail - head > mask ->
				/* the ring is full: the sender waits, or resizes it */
				(LOAD(SENDER, HEAD) != head)
			:: else ->
				if
				:: moves < 2 -> wants = true
				:: true
				fi;
				if
				:: wants -> store(SENDER, TAG(tail & mask), 0)
				:: else -> store(SENDER, TAG(tail & mask), sent + 1)
				fi;
				atomic {
#ifdef WORD_RELAXED
					store(SENDER, WORD(tail & mask),
					      lap + (wants -> MOVE : 0));
#else
					release(SENDER, WORD(tail & mask),
						lap + (wants -> MOVE : 0));
#endif
					sent = sent + (wants -> 0 : 1);
					posted = wants;
					wants = false;
					tail++;
					lap = lap + ((tail & mask) -> 0 : 1)
				}
#ifdef NO_GATE
				;
				if
				:: posted && sent < MESSAGES && tail - head <= mask ->
					store(SENDER, TAG(tail & mask), sent + 1);
					atomic {
						release(SENDER, WORD(tail & mask), lap);
						sent++;
						tail++;
						lap = lap + ((tail & mask) -> 0 : 1)
					}
				:: else
				fi
#endif
			fi
#ifdef NO_COUNT
		:: posted && LOAD(SENDER, SIZE) ->
#else
		:: posted && LOAD(SENDER, SIZE) / 4 == moves + 1 ->
#endif
			atomic {
				mask = LOAD(SENDER, SIZE) % 4;
				moves++;
				posted = false;
#ifndef NO_RESTART
				tail = 0;
				head = 0;
				lap = 1
#endif
			}
		od
	} unless { dead[SENDER] }
}

inline release_slot()
{
	head++;
	lap = lap + ((head & mask) -> 0 : 1);
	release(PORT, HEAD, head)
}

inline answer()
{
#ifdef ANSWER_RELAXED
	store(PORT, SIZE, (moves + 1) * 4 + mask)
#else
	release(PORT, SIZE, (moves + 1) * 4 + mask)
#endif
}

/* near_rx_ring_resize() */
inline moved()
{
	assert(moves < 2);	/* a further MOVE would be left from the old ring */
	if
	:: mask = 3
	:: true		/* no memory: the size stays */
	fi;
#ifdef ANSWER_FIRST
	answer();
#endif
#ifndef NO_ZERO
	i = 0;
	do
	:: i <= mask -> store(PORT, WORD(i), 0); i++
	:: else -> break
	od;
	i = 0;
#endif
#ifndef NO_HEAD
	store(PORT, HEAD, 0);
#endif
	head = 0;
	lap = 1;
#ifndef ANSWER_FIRST
	answer();
#endif
	moves++
}

#define READY (LOAD(PORT, WORD(head & mask)) % MOVE == lap)

proctype port()
{
	byte head, lap = 1, mask = 1, moves, i, word;

	do
	:: READY ->
		word = LOAD(PORT, WORD(head & mask));
		if
		:: word / MOVE -> moved()
		:: else ->
			assert(LOAD(PORT, TAG(head & mask)) == arrived + 1);
			arrived++;
			assert(arrived <= sent);
			release_slot()
		fi;
		word = 0
	:: arrived == MESSAGES -> break
	:: dead[SENDER] && FENCED(SENDER) && !READY -> break
	od;
	assert(arrived == sent);
	ended = true
}

init {
	atomic {
		mortal[SENDER] = true;
		run processor(SENDER);
		run processor(PORT);
		run killer(SENDER);
		run sender();
		run port()
	}
}
