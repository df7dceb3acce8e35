/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Loads the libraries of devices. */
#ifndef DUO_DEVICE_LIBRARY_H
#define DUO_DEVICE_LIBRARY_H

#include <stdbool.h>

struct duo_symbol {
	const char *name;	/* NULL: end of the table */
	void *call;		/* address of a function pointer */
};

struct duo_library {
	/* file name; tests set NULL, to use their own functions */
	const char *name;
	const char *iface;	/* name of the interface, for the warning */
	const struct duo_symbol *symbols;
	/* Initializes the library. False: it has found no device. */
	bool (*init)(void);
	bool tried;		/* duo_library_load() was called */
	bool usable;		/* the result of this call */
};

/*
 * The first call loads the library, which stays loaded, stores the address of
 * each function symbols[].name in the function pointer at symbols[].call, and
 * calls init(). True: success. False: failed, and the first call has logged a
 * warning.
 */
bool duo_library_load(struct duo_library *library);

#endif /* DUO_DEVICE_LIBRARY_H */
