/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions that the entry files share. Each module has one entry file:
 * - entry_duo.c: the provider name selects the core
 * - entry_hook.c: the application opens the core's fabric
 * - entry_near.c: the core is "none" (core/none.h)
 *
 * Modules in a process share nothing, because each exports only one symbol.
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
	/* int, size_t or char * in duo_params; NULL: read() stores the value */
	void *value;
	/* reads and stores the value; NULL: entry.c does so, by `type` */
	void (*read)(const struct duo_param *param);
	const char *help;
};

struct fi_provider *fi_prov_ini(void);

/* For duo_param.read: reads a number, limited to 1 to 1000000. */
void duo_param_read_positive(const struct duo_param *param);

/*
 * Defines and reads params[], and the parameters of all modules. Returns the
 * provider; NULL: libfabric's version is not supported.
 */
struct fi_provider *duo_entry(const struct duo_param *params, size_t count);
/* duo_entry() for a module that wraps a core. */
struct fi_provider *duo_entry_core(void);

#endif /* DUO_ENTRY_H */
