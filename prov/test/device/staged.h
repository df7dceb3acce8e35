/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Shared by the stand-ins for the libraries of ROCr and Level Zero: the memory
 * of two devices, and asynchronous copies. The call of standin_poll() that ends
 * a copy moves its bytes.
 */
#ifndef STAGED_H
#define STAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "unit.h"

#define STANDIN_HALF 128	/* bytes of each device's memory */

extern struct standin {
	char memory[2 * STANDIN_HALF];	/* of device 0, then of device 1 */
	bool unknown; /* the library recognizes no memory as a device's */
	bool no_device;		/* the library finds no device */
	bool lost;		/* each copy that ends has failed */
	/*
	 * number of calls so far, and of the call that fails, from 1; 0: none
	 */
	int calls, fail_at;
	int live; /* number of objects of the library that are not destroyed */
	int moving; /* number of copies that have started and not ended */
	int waits;		/* number of calls that awaited a copy */
	int pins;		/* number of pinned blocks of host memory */
} standin;

/* Of a copy: not started, started, ended, failed. */
enum standin_state { STANDIN_IDLE, STANDIN_MOVES, STANDIN_ENDED, STANDIN_LOST };

struct standin_copy {
	enum standin_state state;
	char *to;
	const char *from;
	size_t len;
	int polls; /* number of further polls that do not end the copy */
};

/* Counts a call of the library. True if this call must fail. */
bool standin_fails(void);
/* Creates a copy that has not started. */
struct standin_copy *standin_open(void);
/* Destroys a copy; asserts that it is not pending. */
void standin_close(struct standin_copy *copy);
/* Starts a copy. */
void standin_begin(struct standin_copy *copy, void *to, const void *from,
		   size_t len);
/*
 * Returns the state of a copy that has started. The third call ends the copy,
 * or the first one with at_once: it moves the bytes, or fails if standin.lost
 * is set.
 */
enum standin_state standin_poll(struct standin_copy *copy, bool at_once);
/* Returns the index of the device with this memory; -1: no device has it. */
int standin_device(const void *addr);

#endif /* STAGED_H */
