/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* For unit tests of the provider: a registry directory, and the clock. */
#ifndef UNIT_H
#define UNIT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fi/api.h"
#include "av/av.h"
#include "av/map.h"
#include "base/log.h"
#include "base/params.h"
#include "core/lazy.h"
#include "core/post.h"
#include "core/read.h"
#include "core/traits.h"
#include "cq/cq.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "obj/mr.h"
#include "shm/shm.h"
#include "suite.h"

/* Advances the provider's clock, which is constant otherwise. */
void unit_pass(uint64_t us);
/* Returns the number of duo_clock_us() calls. */
uint64_t unit_clock_reads(void);

/* Returns the next pseudo-random number, the same in every run. */
uint64_t unit_random(uint64_t *state);

/*
 * Makes a temporary directory and sets duo_params.registry_dir to it; returns
 * its path. It is in $TMPDIR or /tmp.
 */
const char *unit_dir_make(void);
/* Removes the directory of unit_dir_make() and all files in it. */
void unit_dir_remove(void);
/* Returns the path of this user's registry in the directory; NULL: none. */
const char *unit_registry(void);
int unit_dir_count(void);
/* Sets a directory's modification time to seconds_ago before now. */
void unit_dir_changed(int dir, int seconds_ago);
/* Locks the registry exclusively; returns duo_registry_sweep()'s result. */
size_t unit_sweep(const char *dir);

/* Reserves a record for an endpoint of the local transport shm. */
static inline int unit_reserve(const char *dir, const void *addr, size_t len,
			       struct duo_publication *pub)
{
	int ret = duo_shm_publish(pub);

	return ret ? ret : duo_registry_reserve(dir, addr, len, false, pub);
}

/* unit_reserve(), and makes the record visible. Asserts success. */
static inline void unit_publish(const char *dir, const void *addr, size_t len,
				struct duo_publication *pub)
{
	ck_assert_int_eq(unit_reserve(dir, addr, len, pub), 0);
	ck_assert_int_eq(duo_registry_ready(pub), 0);
}

/* lets unit_lookup() accept records of any pid namespace */
extern bool unit_any_pid_ns;
/* Looks up the record of a core address, as another process would. */
enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *peer_name);

/* Creates the shared memory object of a shm name. */
#define UNIT_REGION 4096	/* its size, bytes */
void unit_region_make(const char *peer_name);

#endif /* UNIT_H */
