/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks the environment variables by which libfabric selects providers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

#define INFO_SUFFIX ";ofi_duo"

static bool info_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcasecmp(text + len - end_len, end);
}

static char info_filter[512];	/* the caller's FI_PROVIDER */
/* the caller's FI_HOOK selects the hook of ofi_duo */
static bool info_hooked;

/*
 * Properties of a comma-separated list of provider names. libfabric ignores the
 * case of names.
 */
struct info_names {
	bool efa;		/* one name is "efa" */
	bool wraps;		/* one name ends in ";ofi_duo" */
	/* libfabric returns infos for a name that ends in ";ofi_duo" */
	bool offered;
};

static struct info_names info_read_names(const struct info_fabric *fabric,
					 const char *names)
{
	struct info_names found = { 0 };
	char copy[sizeof(info_filter)], *name, *next = copy;

	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&next, ","))) {
		found.efa |= !strcasecmp(name, "efa");
		if (!info_ends_with(name, INFO_SUFFIX))
			continue;
		found.wraps = true;
		found.offered |= info_offers(fabric, name);
	}
	return found;
}

/*
 * See info.h. aws-ofi-nccl and NVSHMEM need an info with the name "efa". With
 * FI_PROVIDER="efa;ofi_duo" there is none.
 */
void info_check_filter(const struct info_fabric *fabric, const char *offered)
{
	struct info_names names;

	if (!info_filter[0] || !offered[0])
		return;
	names = info_read_names(fabric, info_filter);
	if (strpbrk(info_filter, "\"'")) {
		info_found("provider", INFO_WARNING, "FI_PROVIDER=%s has quotes "
			   "in its value: libfabric has no such provider",
			   info_filter);
		info_remedy("omit them where no shell removes them "
			    "(docker --env-file, YAML, JSON)");
	} else if (!names.wraps && info_filter[0] != '^' && !info_hooked) {
		info_found("provider", INFO_WARNING, "FI_PROVIDER=%s names no "
			   "core with \"" INFO_SUFFIX "\" behind it: programs "
			   "do not use ofi_duo", info_filter);
		info_remedy("use one that libfabric returns, in quotes: "
			    "FI_PROVIDER=%.*s",
			    (int) strcspn(offered, ","), offered);
	} else if (info_filter[0] == '^' && strcasestr(info_filter, "ofi_duo")) {
		info_found("provider", INFO_WARNING, "FI_PROVIDER=%s excludes "
			   "ofi_duo", info_filter);
		info_remedy("FI_PROVIDER=%.*s",
			    (int) strcspn(offered, ","), offered);
	} else if (names.wraps && !names.offered) {
		info_found("provider", INFO_ERROR, "libfabric returns no "
			   "provider of FI_PROVIDER=%s on this host",
			   info_filter);
		info_remedy("use one that libfabric returns; if the core should "
			    "be among them, run FI_LOG_LEVEL=info fi_info "
			    "-p CORE for the reason");
	} else if (!names.wraps || names.efa) {
		info_found("provider", INFO_OK, "FI_PROVIDER=%s", info_filter);
	} else {
		info_found("provider", INFO_NOTE, "FI_PROVIDER=%s hides the "
			   "provider efa from NCCL and NVSHMEM in the same job",
			   info_filter);
		info_remedy("if the job uses them, unset FI_PROVIDER and "
			    "set FI_HOOK=duo; or set, for MPI only: "
			    "OMPI_MCA_opal_common_ofi_provider_include=\"%s\"",
			    info_filter);
	}
}

/* See info.h. Names of FI_HOOK may have the prefix "ofi_hook_". */
bool info_is_hooked(void)
{
	const char *hooks = getenv("FI_HOOK");
	char copy[256], *name, *next = copy;

	snprintf(copy, sizeof(copy), "%s", hooks ? hooks : "");
	while ((name = strsep(&next, ";")))
		if (!strcasecmp(name, "duo") ||
		    !strcasecmp(name, "ofi_hook_duo"))
			return true;
	return info_hooked;
}

bool info_local_is_shm(void)
{
	const char *local = getenv("FI_OFI_DUO_LOCAL");

	return local && !strcasecmp(local, "shm");
}

bool info_is_off(const char *value)
{
	static const char *const off[] = { "0", "no", "false", "off" };
	size_t i;

	for (i = 0; value && i < sizeof(off) / sizeof(off[0]); i++)
		if (!strcasecmp(value, off[i]))
			return true;
	return false;
}

static void info_check_hook_names(const char *hook)
{
	if (*hook && info_local_is_shm()) {
		info_found("hook", INFO_WARNING, "FI_HOOK=%s: hooks drop peer "
			   "objects, the core carries all messages", hook);
		info_remedy("unset FI_HOOK");
	} else if (!info_hooked && strcasestr(hook, "duo")) {
		info_found("hook", INFO_WARNING, "FI_HOOK=%s does not name "
			   "ofi_duo's hook: libfabric ignores the unknown name",
			   hook);
		info_remedy("FI_HOOK=duo");
	}
}

void info_check_environment(void)
{
	const char *filter = getenv("FI_PROVIDER");
	const char *hook = getenv("FI_HOOK");
	const char *local = getenv("FI_OFI_DUO_LOCAL");

	info_hooked = info_is_hooked();
	if (filter)
		snprintf(info_filter, sizeof(info_filter), "%s", filter);
	if (hook)
		info_check_hook_names(hook);
	if (local && !strcasecmp(local, "off")) {
		info_found("local", INFO_WARNING, "FI_OFI_DUO_LOCAL=off: the "
			   "core carries all messages");
		info_remedy("unset FI_OFI_DUO_LOCAL");
	} else if (info_local_is_shm()) {
		info_found("local", INFO_NOTE, "FI_OFI_DUO_LOCAL=shm: "
			   "libfabric's shm carries messages within a host; "
			   "all ranks need the same value");
	} else if (local && strcasecmp(local, "near")) {
		info_found("local", INFO_WARNING, "FI_OFI_DUO_LOCAL=%s is not "
			   "a local transport: near is used", local);
		info_remedy("unset FI_OFI_DUO_LOCAL, or set it to near, shm or "
			    "off");
	}
	/* the later checks need all providers */
	unsetenv("FI_PROVIDER");
	unsetenv("FI_HOOK");
}
