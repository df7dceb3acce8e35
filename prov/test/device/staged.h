/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Common code of the stand-ins for ROCr and Level Zero: memory of two devices,
 * and asynchronous copies. The call of standin_poll() that ends a copy moves
 * the copy's bytes.
 */
#ifndef STAGED_H
#define STAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "unit.h"

/* Defines a function of the library, which has no header. */
#define CALL(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

#define STANDIN_HALF 128	/* bytes of each device's memory */

extern struct standin {
	char memory[2 * STANDIN_HALF];	/* of device 0, then of device 1 */
	bool unknown; /* the library recognizes no memory as a device's */
	bool no_device;		/* the library finds no device */
	bool lost;		/* each copy that ends has failed */
	/* calls until now; number of the call that fails, from 1; 0: none */
	int calls, fail_at;
	int live; /* objects of the library that are not destroyed */
	int moving; /* copies that have started and not ended */
	int waits;		/* calls that awaited a copy */
	int pins;		/* pinned blocks of host memory */
} standin;

enum standin_state { STANDIN_IDLE, STANDIN_MOVES, STANDIN_ENDED, STANDIN_LOST };

struct standin_copy {
	enum standin_state state;
	char *to;
	const char *from;
	size_t len;
	int polls; /* further polls that do not end the copy */
};

/* Counts a call of the library; true if it must fail. */
bool standin_fails(void);
struct standin_copy *standin_open(void);
/* Destroys a copy; asserts that it is not pending. */
void standin_close(struct standin_copy *copy);
void standin_begin(struct standin_copy *copy, void *to, const void *from,
		   size_t len);
/*
 * Returns the state of a started copy. The third call, or the first with
 * at_once, ends the copy. If standin.lost is set, the copy has then failed.
 */
enum standin_state standin_poll(struct standin_copy *copy, bool at_once);
/* Returns the index of the device with this memory; -1: none. */
int standin_device(const void *addr);

#endif /* STAGED_H */
