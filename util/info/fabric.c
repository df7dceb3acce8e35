/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Finds libfabric and the module of ofi_duo, and compares their versions. */

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "config.h"
#include "info.h"
#include "base/abi.h"

#define INFO_LIBFABRIC "libfabric.so.1"
#define INFO_MODULE "libduo-fi.so"
#define INFO_HOOK "libofi_hook_duo-fi.so" /* in the directory of INFO_MODULE */
/* Start of the module's identification, see DUO_IDENT() */
#define INFO_IDENT "@(#)ofi_duo "

/*
 * Oldest supported libfabric. Members of its structures that this program uses
 * have not moved since this version.
 */
#define INFO_OLDEST FI_VERSION(1, 17)
#define INFO_GET_LIBFABRIC \
	"install libfabric 1.17 or newer; if it is installed, add its " \
	"directory to LD_LIBRARY_PATH or /etc/ld.so.conf.d (the EFA " \
	"installer's: /opt/amazon/efa/lib)"

void info_check_libfabric(struct info_fabric *fabric)
{
	void *lib = dlopen(INFO_LIBFABRIC, RTLD_NOW);
	uint32_t (*version)(void) = NULL;
	Dl_info where;

	memset(fabric, 0, sizeof(*fabric));
	if (!lib) {
		info_found("libfabric", INFO_ERROR, "not found: %s",
			   dlerror());
		info_remedy(INFO_GET_LIBFABRIC);
		return;
	}
	*(void **) &version = dlsym(lib, "fi_version");
	*(void **) &fabric->getinfo = dlsym(lib, "fi_getinfo");
	*(void **) &fabric->freeinfo = dlsym(lib, "fi_freeinfo");
	*(void **) &fabric->dupinfo = dlsym(lib, "fi_dupinfo");
	*(void **) &fabric->fabric = dlsym(lib, "fi_fabric");
	*(void **) &fabric->strerror = dlsym(lib, "fi_strerror");
	*(void **) &fabric->getparams = dlsym(lib, "fi_getparams");
	*(void **) &fabric->freeparams = dlsym(lib, "fi_freeparams");
	if (!version || !fabric->getinfo || !fabric->fabric ||
	    !fabric->freeinfo || !fabric->dupinfo || !fabric->strerror ||
	    !dladdr((void *) version, &where) ||
	    !realpath(where.dli_fname, fabric->path)) {
		info_found("libfabric", INFO_ERROR, "%s is not libfabric",
			   INFO_LIBFABRIC);
		info_remedy(INFO_GET_LIBFABRIC);
		return;
	}
	if (version() < INFO_OLDEST) {
		info_found("libfabric", INFO_ERROR, "%s is version %u.%u, "
			   "1.17 is needed", fabric->path, FI_MAJOR(version()),
			   FI_MINOR(version()));
		info_remedy(INFO_GET_LIBFABRIC);
		return;
	}
	fabric->version = version();
	info_found("libfabric", INFO_OK, "version %u.%u, %s",
		   FI_MAJOR(fabric->version), FI_MINOR(fabric->version),
		   fabric->path);
}

/* Reads the module's identification, such as "0.1.0 libfabric 2.1". */
static bool info_module_ident(const char *path, char *ident, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *file, *at = NULL;
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size) {
		file = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE,
			    fd, 0);
		if (file != MAP_FAILED) {
			at = memmem(file, (size_t) st.st_size, INFO_IDENT,
				    strlen(INFO_IDENT));
			if (at)
				snprintf(ident, size, "%.*s",
					 (int) (file + st.st_size - at),
					 at + strlen(INFO_IDENT));
			munmap((void *) file, (size_t) st.st_size);
		}
	}
	close(fd);
	return at != NULL;
}

static bool info_is_module(const char *path)
{
	const char *slash = strrchr(path, '/');
	char ident[128];

	return !access(path, F_OK) &&
	       (!strcmp(slash ? slash + 1 : path, INFO_MODULE) ||
		info_module_ident(path, ident, sizeof(ident)));
}

/*
 * Finds the module in WHERE as libfabric does (fabric(7), FI_PROVIDER_PATH).
 * Stores its path in PATH. An entry of WHERE is a directory, or "+FILE", the
 * path of a module; such a file is used before modules in directories. Stores
 * the directories in DIRS. Returns false if there is no module.
 */
static bool info_find_module(const char *where, char *dirs, size_t dirs_size,
			     char *path, size_t size)
{
	char copy[PATH_MAX], *item, *next = copy;
	bool found = false;
	size_t len = 0;

	snprintf(copy, sizeof(copy), "%s", where + (*where == '@'));
	dirs[0] = '\0';
	while ((item = strsep(&next, ":"))) {
		if (*item == '+' && info_is_module(item + 1)) {
			snprintf(path, size, "%s", item + 1);
			return true;
		}
		if (!*item || *item == '+' || len >= dirs_size)
			continue;
		len += (size_t) snprintf(dirs + len, dirs_size - len, "%s%s",
					 len ? ":" : "", item);
		if (found)
			continue;
		snprintf(path, size, "%s/" INFO_MODULE, item);
		found = !access(path, F_OK);
	}
	return found;
}

static void info_module_missing(const char *dirs)
{
	info_found("module", INFO_ERROR, "no " INFO_MODULE " in %s", dirs);
	if (!access(INFO_PROVIDERDIR "/" INFO_MODULE, F_OK))
		info_remedy("export FI_PROVIDER_PATH=" INFO_PROVIDERDIR);
	else
		info_remedy("install ofi_duo; if it is, set FI_PROVIDER_PATH "
			    "to the directory of " INFO_MODULE);
}

/* Finds the module. Reports a missing module and returns false. */
static bool info_get_module(const struct info_fabric *fabric, char *path,
			    size_t size)
{
	const char *where = getenv("FI_PROVIDER_PATH");
	char dirs[PATH_MAX], usual[PATH_MAX];

	if (where && info_find_module(where, dirs, sizeof(dirs), path, size))
		return true;
	if (where && dirs[0]) {
		info_module_missing(dirs);
		return false;
	}
	/* without FI_PROVIDER_PATH, libfabric uses its own directory */
	snprintf(usual, sizeof(usual), "%.*s/libfabric",
		 (int) (strrchr(fabric->path, '/') - fabric->path),
		 fabric->path);
	if (info_find_module(usual, dirs, sizeof(dirs), path, size))
		return true;
	info_module_missing(usual);
	return false;
}

/*
 * Loads the module. Returns false after a failure, and reports the cause, which
 * libfabric would not report.
 */
static bool info_module_loads(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (module) {
		dlclose(module);
		return true;
	}
	info_found("module", INFO_ERROR, "cannot be loaded: %s", dlerror());
	info_remedy("install the missing library, or an ofi_duo built for this "
		    "system; its user must be able to read %s", path);
	return false;
}

/* True if the module accepts this libfabric, as fi/entry_core.c decides. */
static bool info_module_fits(const struct info_fabric *fabric,
			     unsigned int major, unsigned int minor)
{
	if (info_local_is_shm())
		return fabric->version == FI_VERSION(major, minor);
	return duo_abi_same(FI_VERSION(major, minor), fabric->version);
}

static void info_check_hook(const char *module)
{
	const char *slash = strrchr(module, '/');
	char path[PATH_MAX];

	if (!info_is_hooked() || info_local_is_shm())
		return;
	snprintf(path, sizeof(path), "%.*s" INFO_HOOK,
		 slash ? (int) (slash + 1 - module) : 0, module);
	if (!access(path, R_OK)) {
		info_found("hook", INFO_OK, "FI_HOOK: programs that open "
			   "another provider use ofi_duo under its name, %s",
			   path);
		return;
	}
	info_found("hook", INFO_WARNING, "FI_HOOK names ofi_duo, but " INFO_HOOK
		   " is missing beside %s: programs do not use ofi_duo",
		   module);
	info_remedy("install ofi_duo again");
}

void info_check_module(const struct info_fabric *fabric)
{
	char path[PATH_MAX], ident[128];
	unsigned int major, minor;

	if (!fabric->version || !info_get_module(fabric, path, sizeof(path)))
		return;
	if (access(path, R_OK) && !info_module_loads(path))
		return;
	if (!info_module_ident(path, ident, sizeof(ident)) ||
	    sscanf(ident, "%*s libfabric %u.%u", &major, &minor) != 2) {
		info_found("module", INFO_ERROR, "%s is not a module of "
			   "ofi_duo", path);
		info_remedy("install ofi_duo again");
		return;
	}
	if (!info_module_fits(fabric, major, minor)) {
		info_found("module", INFO_ERROR, "%s was built for libfabric "
			   "%u.%u, not for %u.%u: it %s",
			   path, major, minor, FI_MAJOR(fabric->version),
			   FI_MINOR(fabric->version),
			   duo_abi_same(FI_VERSION(major, minor),
					fabric->version) ?
			   "cannot use shm" : "is not available");
		info_remedy("install ofi_duo built for libfabric %u.%u",
			    FI_MAJOR(fabric->version),
			    FI_MINOR(fabric->version));
		return;
	}
	if (!info_module_loads(path))
		return;
	info_found("module", INFO_OK, "%s, version %s", path, ident);
	info_check_hook(path);
}
