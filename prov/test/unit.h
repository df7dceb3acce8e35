/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the unit tests of the FI layer use: a scratch directory, the clock. */
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
#include "core/read.h"
#include "core/traits.h"
#include "cq/cq.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "obj/mr.h"
#include "shm/shm.h"
#include "suite.h"

/* So many microseconds pass. By itself the provider's clock stands still. */
void unit_pass(uint64_t us);

/* Pseudo-random numbers, the same in every run. */
uint64_t unit_random(uint64_t *state);

/* A new directory, which duo_params.registry_dir names from then on. */
const char *unit_dir_make(void);
/* Removes it with the files in it. */
void unit_dir_remove(void);
/* The path of the user's registry in it; NULL: there is none. */
const char *unit_registry(void);
/* How many files this user's registry in it has. */
int unit_dir_count(void);
/* The directory seems to have changed last so many seconds ago. */
void unit_dir_changed(int dir, int seconds_ago);
/* duo_registry_sweep() as the only one. */
size_t unit_sweep(const char *dir);

/* Of an endpoint with shm; the tests' only calls of these, but near.c's. */
static inline int unit_reserve(const char *dir, const void *addr, size_t len,
			       struct duo_publication *pub)
{
	int ret = duo_shm_publish(pub);

	return ret ? ret : duo_registry_reserve(dir, addr, len, false, pub);
}

/* unit_lookup() meets those of any pid namespace. */
extern bool unit_any_pid_ns;
/* As an endpoint that is published elsewhere. */
enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *peer_name);

/* Makes the region of a shm name, so large. */
#define UNIT_REGION 4096	/* bytes */
void unit_region_make(const char *peer_name);

#endif /* UNIT_H */
