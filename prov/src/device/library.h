/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Loads the libraries of devices. */
#ifndef DUO_DEVICE_LIBRARY_H
#define DUO_DEVICE_LIBRARY_H

#include <stddef.h>

struct duo_symbol {
	const char *name;
	void *call;		/* address of a function pointer */
};

/*
 * Loads a library, which stays loaded. Stores the address of each function
 * symbols[].name in the function pointer at symbols[].call. Tests pass NULL for
 * library, to use their own functions. Returns NULL, or the name of a missing
 * library or function, for duo_library_warn().
 */
const char *duo_library_load(const char *library,
			     const struct duo_symbol *symbols, size_t count);
/*
 * Warns that near cannot copy device memory of iface ("CUDA", for example).
 * missing: result of duo_library_load(); NULL: the library has found no device.
 */
void duo_library_warn(const char *library, const char *missing,
		      const char *iface);

#endif /* DUO_DEVICE_LIBRARY_H */
