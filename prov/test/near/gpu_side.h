/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake device for two ports. near must not access its memory. A copy takes
 * gpu.polls polls; its bytes are copied at the end.
 */
#ifndef NEAR_GPU_SIDE_H
#define NEAR_GPU_SIDE_H

#include <stdatomic.h>

#include "near/rma/mapped.h"
#include "near/rma/stage.h"
#include "rma_side.h"

#define GPU_KEY 77u
#define LENT_KEY 79u	/* region of a's buffer */
#define GPU_ID 5u		/* id of the allocation */
/* needs more chunks than a stage has */
#define GPU_LEN (9 * NEAR_STAGE_CHUNK + 777)

extern struct gpu {
	/* 2 * GPU_LEN bytes: b's region, then a's buffer */
	uint8_t *base, *shadow;
	uint8_t *mapped;	/* the same bytes in a mapping */
	int polls;		/* polls of a copy before its end */
	bool until_failure;	/* copies end only after b's failure */
	/* called by polls that do not end a copy; or NULL */
	void (*on_pending)(void);
	int fail_at; /* number of the call that fails, from 1; 0: none */
	int calls;
	/* atomic for ThreadSanitizer: another thread may end a copy */
	atomic_int under_way;
	int pinned;
	size_t map_len;		/* length of each mapping */
	int map_err;		/* result of map(); 0: success */
	/* calls of map(), and successful ones */
	int map_calls, maps;
	int fd;			/* descriptor that share() duplicates */
	bool share_fails;
	int share_calls;
	char second; /* its address is a second queue of the device */
	/* handle for copies of host memory; NULL: not pinned */
	void *host;
	bool lends;		/* result of lend() */
} gpu;

/* Handles of the device for three buffers, the second one in host memory */
extern void *const on_gpu[];

/* side_setup_direct(), with b's region in device memory that a cannot map */
void gpu_setup_direct(void);
/* The same, after side_setup_asked(). */
void gpu_setup_asked(void);
/* gpu_setup_direct() and gpu_setup_asked(), but a can map b's region */
void gpu_setup_mapped(void);
void gpu_setup_mapped_asked(void);
/* Asserts that nothing is left open. */
void gpu_teardown(void);
/* Adds a region of b's device memory. */
void gpu_region_add(uint64_t key, uint32_t access);
/* Adds b's region, and fills both ends. */
void gpu_region(void);
/* Lets a map b's region. */
void gpu_export(uint64_t id);
/* The same, by a descriptor. */
void gpu_export_fd(uint64_t id);

/* Lets b map a's buffer, and copy from and to it. */
void gpu_lend_region(uint32_t access, bool needs_fd);

/* Flags: the ends that have device memory */
#define AT_B 1
#define AT_A 2
#define BOTH (AT_A | AT_B)

/* Starts an operation; returns the result of near_rma(). */
int gpu_rma(enum near_verb verb, int where, size_t offset, size_t len,
	    uint32_t flags);
/* Asserts the numbers of a's operations on device memory: all, and mapped. */
void gpu_paths(uint64_t all, uint64_t mapped);
uint64_t gpu_mapped_ops(void);
void gpu_last_path(enum near_device_path path);
/* Asserts that an event and a message arrive after a write of GPU_LEN bytes. */
void gpu_event_follows(void);
/* Returns the bytes that operations access at an end. */
const uint8_t *gpu_at_a(int where);
const uint8_t *gpu_at_b(int where);

#endif /* NEAR_GPU_SIDE_H */
