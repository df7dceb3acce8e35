/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Shared by the files of the stand-in for CUDA's driver; see standin.c. */
#ifndef STANDIN_H
#define STANDIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INVALID 1		/* CUDA_ERROR_INVALID_VALUE */
#define MAPPINGS 64

#define CALL(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

/* Mapped device memory: another process's allocation, or physical memory. */
struct mapping {
	char *at, *shadow;	/* without and with access for the CPU */
	size_t len;		/* 0: not in use */
	unsigned int number;	/* serial number in the process */
	bool accessible;	/* the device may access it */
	uint64_t handle;	/* of physical memory; 0: an allocation */
};

extern pthread_mutex_t lock;	/* protects all of the stand-in */
extern struct mapping mappings[MAPPINGS];

/* Call the next functions with "lock" held. */
/* True if STANDIN_FAIL makes this call fail. */
int fails(void);
/* Maps a part of a file at this address; NULL: anywhere. */
struct mapping *add_mapping(void *at, size_t len, int fd, size_t offset);
/*
 * Executes all pending copies, and drops the mapping that begins at this
 * address, but keeps the addresses reserved. Returns the mapping; NULL: there
 * is none.
 */
struct mapping *drop_mapping(uint64_t at);

#endif /* STANDIN_H */
