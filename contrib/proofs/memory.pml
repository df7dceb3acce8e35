/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Shared memory as processors have it: each thread's stores wait in a buffer of
 * its own, in which it alone finds them. They leave it in any order, but two to
 * one word in theirs, and a release after all before it. That is more than x86
 * does, whose stores leave in order, and what ARM may do with stores. Loads are
 * done in the order of the program: a load that is done early is not modelled.
 *
 * Who includes it defines THREADS, WORDS, DEPTH (of a buffer) and PASSES, a row of
 * PASS(word) for each word that a thread stores to without release.
 */
byte mem[WORDS];
byte newest[THREADS * WORDS];	/* of those that wait */
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

/* A full fence, and what the kernel does with a thread that ends. */
#define FENCED(t) (len(buffer[t]) == 0)

/*
 * membarrier(GLOBAL_EXPEDITED) of a thread that has fenced: at some moment
 * between call and return the buffer of the other is empty.
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

/* Is killed at any step of what it does: BODY unless { dead[t] } */
bool mortal[THREADS], dead[THREADS];

proctype killer(byte t)
{
	if
	:: mortal[t] -> dead[t] = true
	:: true
	fi
}
