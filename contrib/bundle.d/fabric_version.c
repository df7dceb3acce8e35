/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * libfabric-version [FILE]: prints version and path of the libfabric that
 * programs load here, or of FILE:
 * 2.1 /usr/lib/x86_64-linux-gnu/libfabric.so.1.28.0
 * If there is no libfabric, prints the reason on stderr and exits with status
 * 1.
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const char *file = argc > 1 ? argv[1] : "libfabric.so.1";
	void *lib = dlopen(file, RTLD_NOW);
	unsigned int (*version)(void) = NULL;
	char path[PATH_MAX];
	Dl_info where;

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **) &version = dlsym(lib, "fi_version");
	if (!version || !dladdr((void *) version, &where) ||
	    !realpath(where.dli_fname, path)) {
		fprintf(stderr, "%s is no libfabric\n", file);
		return 1;
	}
	printf("%u.%u %s\n", version() >> 16, version() & 0xffff, path);
	return 0;
}
