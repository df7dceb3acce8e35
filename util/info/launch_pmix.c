/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * PMIx, for Open MPI's mpirun and srun --mpi=pmix. The functions used here have
 * been the same since version 1.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "launch.h"

#define PMIX_LIBRARY "libpmix.so.2"
/* The EFA installer's library, outside the loader's search path */
#define PMIX_LIBRARY_AWS "/opt/amazon/pmix/lib/" PMIX_LIBRARY

/* Names and values of the PMIx standard (pmix_common.h) */
#define PMIX_BOOL 1
#define PMIX_STRING 3
#define PMIX_UINT32 14
#define PMIX_GLOBAL 3
#define PMIX_WILDCARD (UINT32_MAX - 1)
#define PMIX_JOB_SIZE "pmix.job.size"
#define PMIX_COLLECT_DATA "pmix.collect"

struct pmix_proc {
	char nspace[256];
	uint32_t rank;
};

struct pmix_value {
	uint16_t type;
	union {
		bool flag;
		char *string;
		uint32_t uint32;
		/* size of PMIx's union, which PMIx may copy as a whole */
		uint64_t room[8];
	} data;
};

struct pmix_info {
	char key[512];
	uint32_t flags;
	struct pmix_value value;
};

static struct {
	struct pmix_proc me;
	int (*init)(struct pmix_proc *proc, void *info, size_t ninfo);
	int (*put)(uint8_t scope, const char *key, struct pmix_value *value);
	int (*commit)(void);
	int (*fence)(const struct pmix_proc *procs, size_t nprocs,
		     const void *info, size_t ninfo);
	int (*get)(const struct pmix_proc *proc, const char *key,
		   const void *info, size_t ninfo, struct pmix_value **value);
	int (*finalize)(const void *info, size_t ninfo);
	const char *(*error)(int status);
} pmix;

static int pmix_failed(const char *what, int status)
{
	launch_say("--mpi: %s: %s; see the launcher's own messages, or "
		   "name a directory that all hosts share with --dir", what,
		   pmix.error(status));
	return -1;
}

static int pmix_put(struct launch *launch, const char *key, const char *value)
{
	struct pmix_value put = { .type = PMIX_STRING };
	int status;

	(void) launch;
	put.data.string = (char *) value;
	status = pmix.put(PMIX_GLOBAL, key, &put);
	return status ? pmix_failed("PMIx_Put", status) : 0;
}

/*
 * Waits at a fence that distributes all data. With PMIx's default, PMIx_Get may
 * not find a value that was stored after earlier reads.
 */
static int pmix_fence(struct launch *launch)
{
	static const struct pmix_info collect = {
		.key = PMIX_COLLECT_DATA,
		.value = { .type = PMIX_BOOL, .data.flag = true },
	};
	int status = pmix.commit();

	(void) launch;
	if (status)
		return pmix_failed("PMIx_Commit", status);
	status = pmix.fence(NULL, 0, &collect, 1);
	return status ? pmix_failed("PMIx_Fence", status) : 0;
}

/* Reads a value. Never frees the copy that PMIx allocates. Returns 0 or -1. */
static int pmix_get(struct launch *launch, int rank, const char *key,
		    char *value, size_t size)
{
	struct pmix_proc proc = pmix.me;
	struct pmix_value *got = NULL;
	int status;

	(void) launch;
	proc.rank = (uint32_t) rank;
	status = pmix.get(&proc, key, NULL, 0, &got);
	if (status || !got || got->type != PMIX_STRING)
		return pmix_failed("PMIx_Get", status);
	snprintf(value, size, "%s", got->data.string);
	return 0;
}

static void pmix_end(struct launch *launch)
{
	(void) launch;
	pmix.finalize(NULL, 0);
}

static const struct launch_ops pmix_ops = {
	.put = pmix_put,
	.fence = pmix_fence,
	.get = pmix_get,
	.end = pmix_end,
};

static int pmix_load(void)
{
	void *lib = dlopen(PMIX_LIBRARY, RTLD_NOW);

	if (!lib)
		lib = dlopen(PMIX_LIBRARY_AWS, RTLD_NOW);
	if (!lib) {
		launch_say("--mpi: the launcher uses PMIx, and " PMIX_LIBRARY
			   " is not found: add its directory to "
			   "LD_LIBRARY_PATH, or name a directory that all "
			   "hosts share with --dir");
		return -1;
	}
	*(void **) &pmix.init = dlsym(lib, "PMIx_Init");
	*(void **) &pmix.put = dlsym(lib, "PMIx_Put");
	*(void **) &pmix.commit = dlsym(lib, "PMIx_Commit");
	*(void **) &pmix.fence = dlsym(lib, "PMIx_Fence");
	*(void **) &pmix.get = dlsym(lib, "PMIx_Get");
	*(void **) &pmix.finalize = dlsym(lib, "PMIx_Finalize");
	*(void **) &pmix.error = dlsym(lib, "PMIx_Error_string");
	if (pmix.init && pmix.put && pmix.commit && pmix.fence && pmix.get &&
	    pmix.finalize && pmix.error)
		return 0;
	launch_say("--mpi: " PMIX_LIBRARY " is not PMIx: install it again, or "
		   "name a directory that all hosts share with --dir");
	return -1;
}

int launch_pmix_begin(struct launch *launch)
{
	struct pmix_value *size = NULL;
	struct pmix_proc job;
	int status;

	if (pmix_load())
		return -1;
	status = pmix.init(&pmix.me, NULL, 0);
	if (status)
		return pmix_failed("PMIx_Init", status);
	job = pmix.me;
	job.rank = PMIX_WILDCARD;
	status = pmix.get(&job, PMIX_JOB_SIZE, NULL, 0, &size);
	if (status || !size || size->type != PMIX_UINT32)
		return pmix_failed("PMIx_Get of " PMIX_JOB_SIZE, status);
	launch->rank = (int) pmix.me.rank;
	launch->size = (int) size->data.uint32;
	launch->ops = &pmix_ops;
	return 0;
}
