/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Two ports with one-sided operations: initiator a, target b. */
#ifndef NEAR_RMA_SIDE_H
#define NEAR_RMA_SIDE_H

#include "near/rma/ops.h"
#include "unit.h"

#define SIDE_LARGE (5 * NEAR_STEP + 777)
#define SIDE_KEY 0x1234567890abcdefu
#define SIDE_START 0x1000u	/* address of the region's first byte */

/* A port with a region table, and the results of its operations. */
struct side {
	struct rig *rig;
	struct near_table *table;
	uint32_t done;
	int err;		/* of the last completed operation */
	void *cookie;
	uint32_t events;
	uint32_t events_at;	/* rig->count at the last event */
	struct near_rma_event event;
};

extern struct side a, b;
extern struct near_peer *to_b;
extern struct near_device side_device;	/* of both; filled in by a test */
extern uint8_t *memory, *local;	/* b's region, a's buffer: SIDE_LARGE bytes */

/* Set up ports where a executes reads and writes, or b does. */
void side_setup_direct(void);
void side_setup_asked(void);
void side_teardown(void);
/* As side_setup_direct(), and small operations are delegated. */
void side_setup_delegs(void);
/* Start an operation with one buffer; returns near_rma()'s result. */
int side_start(enum near_verb verb, uint64_t key, size_t offset, size_t len,
	       uint32_t flags);
/* Poll a and b that number of times. */
void side_poll(int times);
/* Poll a, and b if both, until done have ended, the last one with success. */
void side_until(uint32_t done, bool both);
/* Poll until b's failure has ended done operations; none may be left. */
void side_lost(uint32_t done);
/* Delegate an operation, regardless of earlier revocations. */
int side_deleg(enum near_verb verb, uint64_t key, size_t offset, size_t len);
/* Delegate a write of 8 bytes. */
void side_put(size_t offset);
/* Return the control lines of a's ring at b. */
struct near_ctl *side_ctl(void);
/* Register another region over b's memory. */
void side_region(uint64_t key, uint32_t access, size_t len);
/* Open b's port for side_teardown(), after a test closed it. */
void side_reopen(void);
/* Check that the memory is still all zero. */
void side_untouched(void);

#endif /* NEAR_RMA_SIDE_H */
