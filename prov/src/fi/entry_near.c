/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of the provider near. */

#include "config.h"

#include "base/log.h"
#include "base/params.h"
#include "base/util.h"
#include "core/none.h"
#include "fi/entry.h"

#define NEAR_NAME "near"

static const struct duo_param near_param_table[] = {
	{ "cma", FI_PARAM_BOOL, &duo_params.cma, NULL,
	  "Execute RMA and copy large messages directly between the memory "
	  "of the two processes if the system permits it (default: on)" },
};

struct fi_provider *fi_prov_ini(void)
{
	duo_prov.name = NEAR_NAME;
	duo_prov.version = FI_VERSION(DUO_VERSION_MAJOR, DUO_VERSION_MINOR);
	duo_params.core = DUO_NONE;
	/*
	 * no default cores: fi_getinfo returns infos of near only if
	 * FI_PROVIDER or the hints name the provider near
	 */
	duo_params.cores = "";
	return duo_entry(near_param_table, DUO_COUNT(near_param_table));
}
