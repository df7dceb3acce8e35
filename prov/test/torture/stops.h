/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Stops a process at a store to shared memory.
 *
 * near's sources are compiled a second time, with gcc's -fsanitize=thread: that calls a
 * function before each store, and in place of each atomic operation. stops.c has these
 * functions instead of ThreadSanitizer's, so nothing in the sources names them. memcpy(),
 * memset() and the system calls by which near acts on other processes are wrapped by the
 * linker.
 *
 * A *site* is an instruction that calls one of these functions for memory that is mapped
 * with MAP_SHARED. The numbers of sites and the counts are in memory that the process
 * shares with its children. One process is armed at a time.
 */
#ifndef TORTURE_STOPS_H
#define TORTURE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#define STOPS_SITES 2048

struct stops_site {
	uintptr_t pc;		/* 0: no site has this number */
	uint32_t seen;		/* times that one run came here, at most */
	uint32_t run;		/* the number of that run */
	uint32_t stopped;	/* runs that were stopped here */
	uint32_t tried;		/* runs that should have been */
};

/* Maps the table of sites, before the first fork. */
void stops_init(void);
/* Forgets all sites. */
void stops_clear(void);
/*
 * Counts this process's stores from here on, and sends it signal at the nth time that it
 * comes to the site; with nth 0 it only counts. run: the run's number.
 */
void stops_arm(uint32_t run, int signal, uint32_t site, uint32_t nth);
/* Site number i; NULL: there is none, nor of a larger number. */
struct stops_site *stops_site(uint32_t i);
/* The site's offset in this program, for addr2line. */
uintptr_t stops_offset(const struct stops_site *site);

#endif /* TORTURE_STOPS_H */
