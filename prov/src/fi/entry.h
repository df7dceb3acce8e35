/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions that the entry files share. libfabric loads a module, which is a
 * shared library, and calls fi_prov_ini() of the module's entry file:
 * - entry_duo.c is that of ofi_duo; the provider name selects the core.
 * - entry_hook.c is that of the hook; the application opens a fabric of the
 *   core, and the hook wraps it.
 * - entry_near.c is that of the provider near; the core is "none"
 *   (core/none.h).
 *
 * Several modules in a process share nothing, because each exports only
 * fi_prov_ini().
 */
#ifndef DUO_ENTRY_H
#define DUO_ENTRY_H

#include <stddef.h>
#include <rdma/providers/fi_prov.h>

#define DUO_STRING(x) #x
#define DUO_STRING_OF(x) DUO_STRING(x)
/* text in the module's file, by which fi_duo_info(1) identifies the module */
#define DUO_IDENT(name, version) \
	"@(#)" name " " version " libfabric " \
	DUO_STRING_OF(FI_MAJOR_VERSION) "." DUO_STRING_OF(FI_MINOR_VERSION)

/* A runtime parameter of fi_duo(7) or fi_near(7) */
struct duo_param {
	const char *name;
	enum fi_param_type type;
	/*
	 * address of an int, size_t or char * in duo_params for the value;
	 * NULL: read() has the address
	 */
	void *value;
	/*
	 * function that reads and stores the value; NULL: entry.c reads a value
	 * of the type `type`
	 */
	void (*read)(const struct duo_param *param);
	const char *help;
};

struct fi_provider *fi_prov_ini(void);

/*
 * For duo_param.read: reads a number. A number below 1 becomes 1, and one above
 * 1000000 becomes 1000000.
 */
void duo_param_read_positive(const struct duo_param *param);

/*
 * Defines and reads the parameters params[] of one module, and those that all
 * modules have. Returns the provider; NULL: libfabric's version is not
 * supported.
 */
struct fi_provider *duo_entry(const struct duo_param *params, size_t count);
/* Calls duo_entry() with the parameters of a module that wraps a core. */
struct fi_provider *duo_entry_core(void);

#endif /* DUO_ENTRY_H */
