/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The module of ofi_duo: the providers "<core>;ofi_duo". */

#include "config.h"

#include "base/log.h"
#include "fi/entry.h"

static const char duo_ident[] __attribute__((used)) =
	DUO_IDENT(DUO_NAME, PACKAGE_VERSION);

struct fi_provider *fi_prov_ini(void)
{
	return duo_entry_core();
}
