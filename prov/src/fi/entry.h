/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Common functions of the entry files. A module consists of all other objects
 * and one entry file with its only exported symbol. The core: in entry_duo.c by
 * the fabric's name, in entry_hook.c the one that the application has opened,
 * in entry_near.c one that carries nothing. All other symbols are hidden, so
 * two modules in a process share nothing.
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

/* True if the running libfabric has the same public structures; or logs. */
bool duo_entry_version_ok(void);
/* Returns the provider, with its functions set. */
struct fi_provider *duo_entry(void);
/*
 * The same for a module over a provider of libfabric; reads the parameters
 * first. NULL: the running libfabric is not supported.
 */
struct fi_provider *duo_entry_core(void);

#endif /* DUO_ENTRY_H */
