/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Stops a process at a store to shared memory.
 *
 * near's sources are compiled again with gcc's -fsanitize=thread. The compiler
 * then inserts a call of a function before each store, and in place of each
 * atomic operation. stops.c has these functions in place of ThreadSanitizer's.
 * The linker replaces memcpy(), memset() and the system calls that act on other
 * processes.
 *
 * A *site* is an instruction that calls one of these functions for memory
 * mapped with MAP_SHARED. Sites and counts are in memory that the process
 * shares with its children. stops_arm() arms a process; at most one at a time
 * is armed. Only stores of the armed process count.
 */
#ifndef TORTURE_STOPS_H
#define TORTURE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#define STOPS_SITES 2048

struct stops_site {
	/* instruction's address; 0: no site has this number */
	uintptr_t pc;
	uint32_t seen;		/* most executions in one run */
	uint32_t run;		/* number of that run */
	uint32_t stopped;	/* number of runs stopped here */
	uint32_t tried; /* number of runs that should have stopped here */
};

/* Maps the table of sites. Call before the first fork. */
void stops_init(void);
void stops_clear(void);
/*
 * Counts this process's stores from now on, in run number "run". Sends the
 * process the signal at the nth execution of the site; nth 0: never.
 */
void stops_arm(uint32_t run, int signal, uint32_t site, uint32_t nth);
/* Returns site number i; NULL: none. */
struct stops_site *stops_site(uint32_t i);
/* Returns the site's offset in this program, for addr2line. */
uintptr_t stops_offset(const struct stops_site *site);

#endif /* TORTURE_STOPS_H */
