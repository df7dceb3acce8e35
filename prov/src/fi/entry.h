/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Common functions of the entry files. A module consists of all other objects
 * and one entry file with its only exported symbol. With entry_duo.c the
 * fabric's name selects the core, with entry_hook.c the application opens the
 * core's fabric, with entry_near.c the core carries nothing. All other symbols
 * are hidden, so two modules in a process share nothing.
 *
 * Cost: once, when libfabric loads the module. No lock.
 */
#ifndef DUO_ENTRY_H
#define DUO_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/providers/fi_prov.h>

#define DUO_STRING(x) #x
#define DUO_STRING_OF(x) DUO_STRING(x)
/* Identifies the module's file for fi_duo_info(1). */
#define DUO_IDENT(name, version) \
	"@(#)" name " " version " libfabric " \
	DUO_STRING_OF(FI_MAJOR_VERSION) "." DUO_STRING_OF(FI_MINOR_VERSION)

/* A runtime parameter, which fi_duo(7) or fi_near(7) describes. */
struct duo_param {
	const char *name;
	enum fi_param_type type;
	void *value;		/* in duo_params: int, size_t, or copied
				 * char *; unchanged if not set */
	void (*read)(const struct duo_param *param); /* NULL: by type */
	const char *help;
};

struct fi_provider *fi_prov_ini(void);

/* Defines the module's parameters and those of near, and reads them. */
void duo_params_load(const struct duo_param *params, size_t count);
/* A duo_param.read for numbers of at least 1. */
void duo_param_read_positive(const struct duo_param *param);

/* True if the running libfabric has the same public structures; else logs. */
bool duo_entry_version_ok(void);
/* Sets the functions of the provider, and returns it. */
struct fi_provider *duo_entry(void);
/*
 * Returns the provider of a module over a provider of libfabric; reads the
 * parameters first. NULL: the running libfabric is not supported.
 */
struct fi_provider *duo_entry_core(void);

#endif /* DUO_ENTRY_H */
