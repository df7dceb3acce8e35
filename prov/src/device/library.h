/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Loads the libraries of device drivers, such as libcuda.so.1. */
#ifndef DUO_DEVICE_LIBRARY_H
#define DUO_DEVICE_LIBRARY_H

#include <stdbool.h>

struct duo_symbol {
	const char *name;	/* NULL: end of the table */
	void *call;	/* address of the pointer that gets the function */
};

struct duo_library {
	const char *name;	/* file name; NULL, in tests: this program */
	const char *iface;	/* name of the interface, for the warning */
	const struct duo_symbol *symbols;
	bool (*init)(void);	/* false: the library has found no device */
	bool tried;		/* duo_library_load() was called */
	bool usable;		/* result of the first duo_library_load() */
};

/*
 * The first call loads the library, stores the addresses of its functions, and
 * calls init(). Later calls return the result of the first one. ofi_duo never
 * unloads the library. False: the library cannot be used, and the first call
 * has logged a warning.
 */
bool duo_library_load(struct duo_library *library);

#endif /* DUO_DEVICE_LIBRARY_H */
