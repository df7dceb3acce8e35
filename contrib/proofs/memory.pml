/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Shared memory with store buffers: the stores of a thread wait in a buffer, visible to
 * this thread only. They reach memory in any order, except that two stores to one word
 * stay in order, and a release follows all stores before it. This is weaker than x86,
 * whose stores stay in order, and covers the stores of ARM. Loads execute in program
 * order: early loads are not modeled.
 *
 * A model that includes this file defines THREADS, WORDS, DEPTH (entries of a buffer)
 * and PASSES: a PASS(word) for each word that a thread stores to without release.
 */
byte mem[WORDS];
byte newest[THREADS * WORDS];	/* newest value in the buffers */
byte waiting[THREADS * WORDS];
chan buffer[THREADS] = [DEPTH] of { byte, byte, bit };	/* word, value, release */

#define OF(t, w) ((t) * WORDS + (w))
#define LOAD(t, w) (waiting[OF(t, w)] -> newest[OF(t, w)] : mem[w])

inline store_as(t, w, v, release)
{
	d_step {
		nfull(buffer[t]) ->
		buffer[t]!w, v, release;
		newest[OF(t, w)] = v;
		waiting[OF(t, w)]++
	}
}

inline store(t, w, v) { store_as(t, w, v, 0) }
inline release(t, w, v) { store_as(t, w, v, 1) }

/* A full fence; the end of a thread is one, too. */
#define FENCED(t) (len(buffer[t]) == 0)

/*
 * membarrier(GLOBAL_EXPEDITED), called by a thread that has fenced: at some moment
 * between call and return the store buffer of the other thread is empty.
 */
#define BARRIER(other) (len(buffer[other]) == 0)

#define LAND(w) \
	mem[w] = v; \
	waiting[OF(t, w)]--; \
	newest[OF(t, w)] = (waiting[OF(t, w)] -> newest[OF(t, w)] : 0); \
	v = 0

#define PASS(w) \
	:: d_step { \
		buffer[t] ?? [w, _, 0] && !(buffer[t] ?? [w, _, 1]) -> \
		buffer[t] ?? w, v, 0; \
		LAND(w) \
	}

proctype processor(byte t)
{
	byte v, w;
	bit r;

end:
	do
	:: d_step { nempty(buffer[t]) -> buffer[t]?w, v, r; LAND(w); w = 0; r = 0 }
	PASSES
	od
}

/* A mortal thread may be killed at any step of BODY unless { dead[t] }. */
bool mortal[THREADS], dead[THREADS];

proctype killer(byte t)
{
	if
	:: mortal[t] -> dead[t] = true
	:: true
	fi
}
