/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* near_fixture.h with a memory region of the peer, for RMA and atomics. */
#ifndef PORT_FIXTURE_H
#define PORT_FIXTURE_H

#include "near_fixture.h"
#include "transport/near/onesided.h"
#include "near/rma/ops.h"

#define KEY 99			/* key of the peer's region */
#define START 0x10000u		/* address of the region's first byte */
#define WORDS 64

extern uint64_t theirs[WORDS], ours[WORDS];
extern char context;
extern struct fid_mr *mr;	/* region of port_region_open(); NULL: none */
/* number of polls of a copy by the peer's device that find it unfinished */
extern int port_device_polls;
/* number of the call of the peer's device that fails, from 1; 0: none */
extern int port_device_fails;
/* number of the peer's events with CQ data */
extern uint32_t port_data;
/* called at the end of the peer's operations */
extern void (*port_ended)(void *cookie, int err);

void port_setup(const struct fixture_attr *as);
void port_teardown(void);
/* Registers the fake device's memory with this access. */
void port_region_open(uint64_t access);
void port_region_close(void);
/*
 * Registers the fake device's memory again. The core returns the same region,
 * as efa does with its cache of regions.
 */
void port_region_again(void);
void port_device_teardown(void);
/*
 * Adds a region of device memory with DEVICE_KEY to the peer's table. The
 * region begins 100 bytes behind the start of its allocation.
 */
#define DEVICE_KEY 98
#define DEVICE_AT 0x7654321000u	/* the region's address in the peer's process */
void port_add_device(const char *handle);
/*
 * Adds a region like port_add_device(), but with MESSAGE_LEN bytes and this
 * access. Its bytes lie in the second half of the fake device's memory.
 */
#define MESSAGE_LEN (LARGE / 2 - 100)
void port_add_messages(const char *handle, uint32_t access);
/*
 * "at" is an address in the peer's device memory. Returns the address at which
 * the test can access the same byte. NULL: "at" is not in this device memory.
 */
char *port_device(const void *at);
void port_remove_device(void);
void port_close(void);
/* Calls fi_write() from ours[] to theirs[], for the first len bytes of both. */
void write_ours(size_t len);
/* Adds operands to theirs[], whose values before the call go to was[]. */
void fetch_add(const uint64_t *operands, size_t count, uint64_t *was);
/* Adds *operand to theirs[0]. */
void add(const uint64_t *operand);
/* Polls both sides until the operation completes; returns the completion. */
struct fi_cq_tagged_entry ended(uint64_t flags);
/* Registers memory of this process with this access and requested key. */
struct fid_mr *host_region(void *buf, size_t len, uint64_t access,
			   uint64_t key);
/* Registers the fake device's memory, like port_region_open(). */
struct fid_mr *device_region(uint64_t access, uint64_t key, uint64_t flags);
/* Asserts the number of operations over near, and over the core. */
void carried(uint64_t near_rma_ops_, uint64_t near_atomics,
	     uint64_t core_ops);

#endif /* PORT_FIXTURE_H */
