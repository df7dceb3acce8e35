/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Variables that decide what libfabric offers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

#define INFO_SUFFIX ";ofi_duo"

static bool info_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/*
 * aws-ofi-nccl and NVSHMEM take providers whose name is exactly "efa". With
 * FI_PROVIDER="efa;ofi_duo" libfabric offers none of that name.
 */
static void info_check_filter(const char *filter)
{
	bool wraps = false, bare = false;
	char copy[512], *name, *next = copy;

	snprintf(copy, sizeof(copy), "%s", filter);
	while ((name = strsep(&next, ","))) {
		wraps |= info_ends_with(name, INFO_SUFFIX);
		bare |= !strcmp(name, "efa");
	}
	if (!wraps || bare || filter[0] == '^') {
		info_found("provider", INFO_OK, "FI_PROVIDER=%s", filter);
		return;
	}
	info_found("provider", INFO_NOTE, "FI_PROVIDER=%s hides the provider "
		   "efa from NCCL and NVSHMEM in the same job", filter);
	info_remedy("where the job uses them, unset FI_PROVIDER and tell MPI "
		    "alone: OMPI_MCA_opal_common_ofi_provider_include=\"%s\"",
		    filter);
}

bool info_peer_is_shm(void)
{
	const char *peer = getenv("FI_OFI_DUO_PEER");

	return peer && !strcasecmp(peer, "shm");
}

static bool info_is_off(const char *value)
{
	static const char *const off[] = { "0", "no", "false", "off" };
	size_t i;

	for (i = 0; value && i < sizeof(off) / sizeof(off[0]); i++)
		if (!strcasecmp(value, off[i]))
			return true;
	return false;
}

void info_check_environment(void)
{
	const char *filter = getenv("FI_PROVIDER");
	const char *hook = getenv("FI_HOOK");

	if (filter)
		info_check_filter(filter);
	if (hook && *hook && info_peer_is_shm()) {
		info_found("hook", INFO_WARNING, "FI_HOOK=%s: hooks lose peer "
			   "objects, the core carries all messages", hook);
		info_remedy("unset FI_HOOK");
	}
	if (info_is_off(getenv("FI_OFI_DUO_USE_SHM"))) {
		info_found("use_shm", INFO_WARNING, "FI_OFI_DUO_USE_SHM is "
			   "off, the core carries all messages");
		info_remedy("unset FI_OFI_DUO_USE_SHM");
	}
	if (info_peer_is_shm())
		info_found("peer", INFO_NOTE, "FI_OFI_DUO_PEER=shm: "
			   "libfabric's shm carries the messages of one host, "
			   "and so it must in all ranks");
	/* All providers are to be seen from here on. */
	unsetenv("FI_PROVIDER");
	unsetenv("FI_HOOK");
}
