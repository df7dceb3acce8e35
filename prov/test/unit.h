/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Shared by unit tests of the FI layer: a scratch directory, the clock. */
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

/* Advances the provider's clock, which stands still otherwise. */
void unit_pass(uint64_t us);

/* Pseudo-random numbers, the same in every run. */
uint64_t unit_random(uint64_t *state);

/* Makes a directory, and sets duo_params.registry_dir to it. */
const char *unit_dir_make(void);
/* Removes it with the files in it. */
void unit_dir_remove(void);
/* Returns the path of the user's registry in it; NULL: there is none. */
const char *unit_registry(void);
/* Returns the number of files in this user's registry in it. */
int unit_dir_count(void);
/* Sets the time of the directory's last change. */
void unit_dir_changed(int dir, int seconds_ago);
/* Calls duo_registry_sweep() as the only sweeping process. */
size_t unit_sweep(const char *dir);

/* Reserves a record for an endpoint with shm. */
static inline int unit_reserve(const char *dir, const void *addr, size_t len,
			       struct duo_publication *pub)
{
	int ret = duo_shm_publish(pub);

	return ret ? ret : duo_registry_reserve(dir, addr, len, false, pub);
}

/* unit_lookup() accepts records of any pid namespace. */
extern bool unit_any_pid_ns;
/* Looks an address up as an endpoint that is published elsewhere. */
enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *peer_name);

/* Makes the region of a shm name. */
#define UNIT_REGION 4096	/* bytes */
void unit_region_make(const char *peer_name);

#endif /* UNIT_H */
