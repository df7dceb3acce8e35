/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the entry files have in common. A module is all of the objects and one
 * entry file, which has the one exported symbol: entry_duo.c has a core by the
 * fabric's name, entry_hook.c the one that the application has opened,
 * entry_near.c one that carries nothing. Two modules of one process share
 * nothing: all other symbols are hidden.
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
/* For fi_duo_info(1), which reads it in the module's file. */
#define DUO_IDENT(name, version) \
	"@(#)" name " " version " libfabric " \
	DUO_STRING_OF(FI_MAJOR_VERSION) "." DUO_STRING_OF(FI_MINOR_VERSION)

/* A runtime parameter, which fi_duo(7) or fi_near(7) describes. */
struct duo_param {
	const char *name;
	enum fi_param_type type;
	void *value;		/* in duo_params; as it was if none is set: */
				/* int, size_t, or char * of a copy */
	void (*read)(const struct duo_param *param); /* NULL: by its type */
	const char *help;
};

struct fi_provider *fi_prov_ini(void);

/* Defines the module's parameters and those of near, and reads them. */
void duo_params_load(const struct duo_param *params, size_t count);
/* duo_param.read of a number from 1 on. */
void duo_param_read_positive(const struct duo_param *param);

/* Any libfabric with our public structures will do. */
bool duo_entry_version_ok(void);
/* The provider, with its functions. */
struct fi_provider *duo_entry(void);
/*
 * The same for a module with a core of libfabric's, after it has read its
 * parameters. NULL: not for the libfabric that runs.
 */
struct fi_provider *duo_entry_core(void);

#endif /* DUO_ENTRY_H */
