/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dlfcn.h>

#include "base/log.h"
#include "device/library.h"

const char *duo_library_load(const char *library,
			     const struct duo_symbol *symbols, size_t count)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	const char *missing = handle ? NULL : "the library";
	void *call;
	size_t i;

	for (i = 0; handle && i < count; i++) {
		call = dlsym(handle, symbols[i].name);
		if (!call)
			missing = symbols[i].name;
		*(void **) symbols[i].call = call;
	}
	return missing;
}

void duo_library_warn(const char *library, const char *missing,
		      const char *iface)
{
	DUO_WARN(MR, "%s: %s%s: messages from and to %s memory will fail. "
		 "Install the driver's library, or set FI_OFI_DUO_LOCAL=off\n",
		 library, missing ? "no " : "",
		 missing ? missing : "no device", iface);
}
