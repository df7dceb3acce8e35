/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Loads the libraries of devices. */
#ifndef DUO_DEVICE_LIBRARY_H
#define DUO_DEVICE_LIBRARY_H

#include <stddef.h>

struct duo_symbol {
	const char *name;
	void *call;		/* address of the pointer to the function */
};

/*
 * Loads a library and stores the addresses of its functions. The library stays
 * loaded, because the application may use it, too. In tests the library's name
 * may be NULL; then this program's symbols are used. Returns NULL; or, for
 * duo_library_warn(), the name of what is missing.
 */
const char *duo_library_load(const char *library,
			     const struct duo_symbol *symbols, size_t count);
/*
 * Warns that memory of an interface cannot be copied. missing: NULL if the
 * library is there but finds no device.
 */
void duo_library_warn(const char *library, const char *missing,
		      const char *iface);

#endif /* DUO_DEVICE_LIBRARY_H */
