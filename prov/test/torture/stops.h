/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Stops a process at a store to shared memory.
 *
 * near's sources are compiled a second time, with gcc's -fsanitize=thread. The
 * compiler then calls a function before each store, and instead of each atomic
 * operation. stops.c has these functions in place of ThreadSanitizer's, so
 * near's sources do not name them. The linker replaces memcpy(), memset() and
 * the system calls by which near acts on other processes.
 *
 * A *site* is an instruction that calls one of these functions for memory
 * mapped with MAP_SHARED. The numbers of sites and the counts are in memory
 * that the process shares with its children. At most one process is armed at a
 * time: its count is running.
 */
#ifndef TORTURE_STOPS_H
#define TORTURE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#define STOPS_SITES 2048

struct stops_site {
	/* address of the instruction; 0: no site has this number */
	uintptr_t pc;
	uint32_t seen;		/* largest number of executions in one run */
	uint32_t run;		/* number of that run */
	uint32_t stopped;	/* number of runs that were stopped here */
	uint32_t tried; /* number of runs that should have been stopped here */
};

/* Maps the table of sites. Call before the first fork. */
void stops_init(void);
/* Removes all sites from the table. */
void stops_clear(void);
/*
 * Counts the stores of this process from now on. Sends it the signal when it
 * executes the site for the nth time; nth 0: never. run: number of the run.
 */
void stops_arm(uint32_t run, int signal, uint32_t site, uint32_t nth);
/* Returns site number i; NULL: there are not that many sites. */
struct stops_site *stops_site(uint32_t i);
/* Returns the site's offset in this program, for addr2line. */
uintptr_t stops_offset(const struct stops_site *site);

#endif /* TORTURE_STOPS_H */
