/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two ports for tests of RMA and atomics: a is the initiator, b the target. */
#ifndef NEAR_RMA_SIDE_H
#define NEAR_RMA_SIDE_H

#include "near/rma/ops.h"
#include "unit.h"

#define SIDE_LARGE (5 * NEAR_STEP + 777)
#define SIDE_KEY 0x1234567890abcdefu
#define SIDE_START 0x1000u	/* start of the region */

/* A port with a region table, and the completions of its operations. */
struct side {
	struct rig *rig;
	struct near_table *table;
	uint32_t done;
	int err; /* error of the last operation; 0: none */
	void *cookie;
	void (*on_done)(void);	/* called after each completion */
	uint32_t events;
	uint32_t events_at;	/* rig->count at the last event */
	struct near_rma_event event;
};

extern struct side a, b;
extern struct near_peer *to_b;
/* device of both ports; tests set it */
extern struct near_device side_device;
/* mappings that near_table_unmapped() has returned */
extern int side_unmapped;
/* b's region and a's buffer, SIDE_LARGE bytes each */
extern uint8_t *memory, *local;

/* Opens a and b. The initiator executes reads and writes. */
void side_setup_direct(void);
/* Opens a and b. The target executes all operations. */
void side_setup_asked(void);
void side_teardown(void);
/* Like side_setup_direct(), but small operations are delegated. */
void side_setup_offers(void);
/* Like side_setup_offers(), but b also has an active ring from a. */
void side_setup_delegs(void);
/*
 * Calls near_rma() as a, with these fields of struct near_rma_args; returns its
 * result. addr is an offset in the region. The fields that have the same value
 * in all tests, and by default len (that of local), are set by side_call().
 */
#define side_rma(...) side_call((struct near_rma_args) { __VA_ARGS__ })
int side_call(struct near_rma_args args);
#define SIDE_DATA 0x11223344556677u	/* data of all operations */
/* near_rma_args.local for one buffer in host memory */
#define SIDE_BUF(at, len) { &(const struct iovec) { at, len }, 1 }
/* side_rma() with one buffer, the begin of `local`, of len bytes. */
int side_start(enum near_verb verb, uint64_t key, size_t offset, size_t len,
	       uint32_t flags);
/* Polls a and b this number of times. */
void side_poll(int times);
/* Polls a (and b if "both") until "done" operations have ended with success. */
void side_until(uint32_t done, bool both);
/* Polls a until b's failure has ended "done" operations, and none is left. */
void side_lost(uint32_t done);
/* Polls a and b until the first operation has ended; asserts its error. */
void side_fails(int err);
/* Sends b a request for an operation on the start of the region. */
void side_request(struct near_rma_slot request);
/* Delegates an operation, even after revocations. */
int side_deleg(enum near_verb verb, uint64_t key, size_t offset, size_t len);
/* Delegates a write of 8 bytes to this offset. */
void side_put(size_t offset);
/* Returns the control data of the ring from a to b. */
struct near_ctl *side_ctl(void);
/* Registers another region of b's memory. */
void side_region(uint64_t key, uint32_t access, size_t len);
/* Asserts that b's memory is still zero. */
void side_untouched(void);

#endif /* NEAR_RMA_SIDE_H */
