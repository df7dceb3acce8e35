/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry's file format, defined independently of registry.c. Tests write
 * files that are invalid in one respect.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_SIZE 392		/* size of a record, bytes */

enum record_offset {
	RECORD_MAGIC = 0,
	RECORD_VERSION = 8,
	RECORD_OWN_SIZE = 12,
	RECORD_PEER = 16,
	RECORD_PID = 20,
	RECORD_PID_NS = 24,
	RECORD_NET_NS = 32,
	RECORD_COMPAT_ID = 40,
	RECORD_START = 48,
	RECORD_ADDR_LEN = 56,
	RECORD_ADDR = 64,
	RECORD_SHM_NAME = 320,
	RECORD_CHECKSUM = 384,
};

/* Returns the FNV-1a hash of all bytes before the checksum. */
static inline uint64_t record_checksum(const uint8_t *record)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < RECORD_CHECKSUM; i++)
		hash = (hash ^ record[i]) * 0x100000001b3ULL;
	return hash;
}

#endif /* RECORD_H */
