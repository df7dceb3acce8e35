/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two ports for tests of RMA and atomics: a is the initiator, b the target. */
#ifndef NEAR_RMA_SIDE_H
#define NEAR_RMA_SIDE_H

#include "near/rma/ops.h"
#include "unit.h"

#define SIDE_LARGE (5 * NEAR_STEP + 777)
#define SIDE_KEY 0x1234567890abcdefu
#define SIDE_START 0x1000u	/* address of the region's first byte */

/* A port with a region table, and the completions of its operations. */
struct side {
	struct rig *rig;
	struct near_table *table;
	uint32_t done;
	int err; /* error of the operation that completed last; 0: none */
	void *cookie;
	void (*on_done)(void);	/* called when an operation has completed */
	uint32_t events;
	uint32_t events_at;	/* rig->count at the last event */
	struct near_rma_event event;
};

extern struct side a, b;
extern struct near_peer *to_b;
/* device of both ports; tests fill it in */
extern struct near_device side_device;
/* number of mappings that near has passed on */
extern int side_unmapped;
/* b's region and a's buffer, SIDE_LARGE bytes each */
extern uint8_t *memory, *local;

/*
 * Setups with two ports: side_setup_direct() lets the initiator execute reads
 * and writes, side_setup_asked() the target.
 */
void side_setup_direct(void);
void side_setup_asked(void);
void side_teardown(void);
/* side_setup_direct(), and small operations are delegated. */
void side_setup_offers(void);
/* side_setup_offers(), and b has polled an rx ring of a. */
void side_setup_delegs(void);
/* Start an operation with one buffer; return the result of near_rma(). */
int side_start(enum near_verb verb, uint64_t key, size_t offset, size_t len,
	       uint32_t flags);
/* Poll a and b this number of times. */
void side_poll(int times);
/*
 * Poll a, and b if "both" is set, until "done" operations have completed.
 * Assert that the last one succeeded.
 */
void side_until(uint32_t done, bool both);
/*
 * Poll until b's failure has ended "done" operations; assert that none is left.
 */
void side_lost(uint32_t done);
/* Delegate an operation, whatever was revoked before. */
int side_deleg(enum near_verb verb, uint64_t key, size_t offset, size_t len);
/* Delegate a write of 8 bytes to this offset. */
void side_put(size_t offset);
/* Return the control lines of the ring through which a sends to b. */
struct near_ctl *side_ctl(void);
/* Register another region of b's memory. */
void side_region(uint64_t key, uint32_t access, size_t len);
/* Assert that b's memory is still zero. */
void side_untouched(void);

#endif /* NEAR_RMA_SIDE_H */
