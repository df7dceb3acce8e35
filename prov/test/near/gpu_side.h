/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake device for two ports. near must not load from or store to its memory.
 * Copies are asynchronous: after gpu.polls polls, the next poll copies the
 * bytes and returns that the copy has ended.
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
	uint8_t *mapped;	/* address of the same bytes in a mapping */
	int polls;		/* number of polls that do not end a copy */
	bool until_failure;	/* copies end after b's failure only */
	/* called by each poll that does not end a copy; or NULL */
	void (*on_pending)(void);
	int fail_at; /* number of the call that fails, from 1; 0: none */
	int calls;
	/*
	 * Atomic for ThreadSanitizer: a thread that polls b ends a copy for
	 * which a waits in another mapping of the same memory.
	 */
	atomic_int under_way;
	int pinned;
	size_t map_len;		/* length of each mapping */
	int map_err;		/* result of map(); 0: it succeeds */
	/* number of calls of map(), and of those that succeeded */
	int map_calls, maps;
	int fd;			/* the descriptor that share() duplicates */
	bool share_fails;
	int share_calls;
	char second; /* its address stands for a second queue of the device */
	void *host;	/* handle for copies of host memory; NULL: it is not pinned */
	bool lends;		/* result of lend() */
} gpu;

/* Handles of the device for three buffers, the second one in host memory. */
extern void *const on_gpu[];

/*
 * side_setup_direct() or side_setup_asked(), with b's region in device memory
 * that a cannot map. gpu_teardown() asserts that nothing is left open.
 */
void gpu_setup_direct(void);
void gpu_setup_asked(void);
/* The same, but a may map b's region. */
void gpu_setup_mapped(void);
void gpu_setup_mapped_asked(void);
void gpu_teardown(void);
/* Add a region of b's device memory with this key and these rights. */
void gpu_region_add(uint64_t key, uint32_t access);
/* Add b's region, and fill both ends. */
void gpu_region(void);
/* Let a map b's region; gpu_export_fd(): by a descriptor. */
void gpu_export(uint64_t id);
void gpu_export_fd(uint64_t id);

/* Let b map a's buffer, and copy from and to it. */
void gpu_lend_region(uint32_t access, bool needs_fd);

/* Flags: the ends that have device memory. */
#define AT_B 1
#define AT_A 2
#define BOTH (AT_A | AT_B)

/* Start an operation; return the result of near_rma(). */
int gpu_rma(enum near_verb verb, int where, size_t offset, size_t len,
	    uint32_t flags);
/*
 * Assert the numbers of a's operations on device memory, and of the mapped
 * ones.
 */
void gpu_paths(uint64_t all, uint64_t mapped);
uint64_t gpu_mapped_ops(void);
void gpu_last_path(enum near_device_path path);
/*
 * Write GPU_LEN bytes with a remote event, and send a message: both must arrive
 * after all bytes.
 */
void gpu_event_follows(void);
/* Return the bytes that operations access at an end. */
const uint8_t *gpu_at_a(int where);
const uint8_t *gpu_at_b(int where);

#endif /* NEAR_GPU_SIDE_H */
