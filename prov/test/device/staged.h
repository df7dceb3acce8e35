/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Shared by the stand-ins for ROCr and Level Zero: the memory of two devices,
 * and copies. A copy moves its bytes in the call that reports or awaits its
 * end.
 */
#ifndef STAGED_H
#define STAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "unit.h"

#define STANDIN_HALF 128	/* bytes of each device's memory */

extern struct standin {
	char memory[2 * STANDIN_HALF];	/* of two devices */
	bool unknown;		/* the library recognizes no memory */
	bool no_device;
	bool lost;		/* copies fail after their start */
	int calls, fail_at;	/* number of the call that fails; 0: none */
	int live;		/* number of objects that are not destroyed */
	int moving;		/* number of copies that have not ended */
	int waits;
	int pins;
} standin;

enum standin_state { STANDIN_IDLE, STANDIN_MOVES, STANDIN_ENDED, STANDIN_LOST };

struct standin_copy {
	enum standin_state state;
	char *to;
	const char *from;
	size_t len;
	int polls;		/* number of polls until the end */
};

/* True if this call must fail. */
bool standin_fails(void);
struct standin_copy *standin_open(void);
void standin_close(struct standin_copy *copy);
void standin_begin(struct standin_copy *copy, void *to, const void *from,
		   size_t len);
/* Ends the copy after two polls, or at once. */
enum standin_state standin_poll(struct standin_copy *copy, bool at_once);
/* Returns the number of the device that has this memory; -1: none. */
int standin_device(const void *addr);

#endif /* STAGED_H */
