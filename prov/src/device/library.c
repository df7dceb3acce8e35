/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dlfcn.h>
#include <pthread.h>

#include "base/log.h"
#include "device/library.h"

/*
 * Loads the library, and stores the addresses of its functions. Returns NULL,
 * or the name of the function that is missing, or "the library".
 */
static const char *duo_library_find(const struct duo_library *library)
{
	void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL), *call;
	const struct duo_symbol *symbol;

	if (!handle)
		return "the library";
	for (symbol = library->symbols; symbol->name; symbol++) {
		call = dlsym(handle, symbol->name);
		if (!call)
			return symbol->name;
		*(void **) symbol->call = call;
	}
	return NULL;
}

static bool duo_library_open(const struct duo_library *library)
{
	const char *missing = duo_library_find(library);

	if (!missing && library->init())
		return true;
	DUO_WARN(MR, "%s: %s%s: messages from and to %s memory will fail. "
		 "Install the driver's library, or set FI_OFI_DUO_LOCAL=off\n",
		 library->name, missing ? "no " : "",
		 missing ? missing : "no device", library->iface);
	return false;
}

bool duo_library_load(struct duo_library *library)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool usable;

	pthread_mutex_lock(&lock);
	if (!library->tried)
		library->usable = duo_library_open(library);
	library->tried = true;
	usable = library->usable;
	pthread_mutex_unlock(&lock);
	return usable;
}
