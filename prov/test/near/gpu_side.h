/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A fake device for two ports, with the functions of near_device. The addresses
 * of device memory that near gets permit no access by the CPU. A copy is
 * pending for gpu.polls calls of done(); the next call copies the bytes.
 */
#ifndef NEAR_GPU_SIDE_H
#define NEAR_GPU_SIDE_H

#include <stdatomic.h>

#include "near/rma/mapped.h"
#include "near/rma/stage.h"
#include "rma_side.h"

#define GPU_KEY 77u
#define LENT_KEY 79u	/* key of the region with a's buffer */
#define GPU_ID 5u		/* export id of the device memory */
/*
 * length of b's region and of a's buffer: more than all chunks of a stage have
 */
#define GPU_LEN (9 * NEAR_STAGE_CHUNK + 777)

extern struct gpu {
	/*
	 * 2 * GPU_LEN bytes: b's region, then a's buffer. base is without
	 * access rights; shadow is the same memory for the tests
	 */
	uint8_t *base, *shadow;
	uint8_t *mapped;	/* the same memory after map() */
	int polls;		/* calls of done() before a copy ends */
	bool until_failure;	/* copies end only after b's failure */
	/*
	 * the device has no queues: a copy that starts while another one is
	 * pending is made at once, before the pending one
	 */
	bool unordered;
	/* called by done() while a copy is pending; may be NULL */
	void (*on_pending)(void);
	/*
	 * number of the call that fails, of all calls that start or end a copy,
	 * from 1; 0: none
	 */
	int fail_at;
	int calls;
	/* atomic for ThreadSanitizer: another thread may end a copy */
	atomic_int under_way;
	int pinned;
	size_t map_len;		/* length of each mapping */
	int map_err;		/* result of map(); 0: success */
	/* number of calls of map(); number of mappings that are not released */
	int map_calls, maps;
	int fd;			/* file that share() duplicates */
	bool share_fails;
	int share_calls;
	char second; /* its address is a second queue of the device */
	/* result of host(): handle of host memory; NULL: not pinned */
	void *host;
	bool lends;		/* result of lend() */
} gpu;

/* Handles of the device for three buffers, the second one in host memory */
extern void *const on_gpu[];
/* near_rma_args.local for one buffer at this offset of the device memory */
#define GPU_BUF(offset, len)						\
	{ &(const struct iovec) { gpu.base + (offset), len }, 1, on_gpu }

/* side_setup_direct(), with b's region in device memory that a cannot map */
void gpu_setup_direct(void);
/* Like gpu_setup_direct(), but with side_setup_asked(). */
void gpu_setup_asked(void);
/* gpu_setup_direct() and gpu_setup_asked(), but a can map b's region */
void gpu_setup_mapped(void);
void gpu_setup_mapped_asked(void);
/* Closes both ports. Asserts that no copy, pin or mapping is left. */
void gpu_teardown(void);
/* Adds a region of b's device memory. */
void gpu_region_add(uint64_t key, uint32_t access);
/* Adds b's region with GPU_KEY; fills the device memory and `local`. */
void gpu_region(void);
/* Exports b's region with this id, so that a can map it. */
void gpu_export(uint64_t id);
/* Replaces b's region by one that a can map, with this id; 0: cannot map. */
void gpu_region_again(uint64_t id);
/* Asserts that a may release a mapping, and releases it. */
void gpu_unmap(void);
/*
 * Like gpu_export(), but a maps the region by a file descriptor from share().
 */
void gpu_export_fd(uint64_t id);

/* Lets b map a's buffer, and copy from and to it. */
void gpu_lend_region(uint32_t access, bool needs_fd);

/* Flags in `where`: the ends with device memory; the others use host memory */
#define AT_B 1
#define AT_A 2
#define BOTH (AT_A | AT_B)

/* Starts an operation of a on b's memory; returns the result of near_rma(). */
int gpu_rma(enum near_verb verb, int where, size_t offset, size_t len,
	    uint32_t flags);
/* Starts an operation at offset 0, then calls side_until(done, both). */
void gpu_run(enum near_verb verb, int where, size_t len, uint32_t done,
	     bool both);
/* Asserts a's numbers of operations on device memory: all, and mapped ones. */
void gpu_paths(uint64_t all, uint64_t mapped);
uint64_t gpu_mapped_ops(void);
void gpu_last_path(enum near_device_path path);
/*
 * Writes GPU_LEN bytes with NEAR_RMA_DATA, then sends a message. Asserts that b
 * gets the bytes, then the event, then the message.
 */
void gpu_event_follows(void);
/* Return the memory of a, or b, that gpu_rma() with this `where` uses. */
const uint8_t *gpu_at_a(int where);
const uint8_t *gpu_at_b(int where);

#endif /* NEAR_GPU_SIDE_H */
