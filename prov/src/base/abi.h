/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Groups of libfabric versions with the same public structures */
#ifndef DUO_ABI_H
#define DUO_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fabric.h>

/*
 * True if a module that was built with libfabric `built` works with libfabric
 * `running`. A version outside all groups works only with itself.
 */
static inline bool duo_abi_same(uint32_t built, uint32_t running)
{
	static const struct {
		uint32_t first;
		uint32_t last;
	} group[] = {
		{ FI_VERSION(1, 14), FI_VERSION(1, 17) },
		{ FI_VERSION(2, 0), FI_VERSION(2, 4) },
		{ FI_VERSION(2, 5), FI_VERSION(2, 6) },
	};
	size_t i;

	if (built == running)
		return true;
	for (i = 0; i < sizeof(group) / sizeof(group[0]); i++)
		if (built >= group[i].first && built <= group[i].last)
			return running >= group[i].first &&
			       running <= group[i].last;
	return false;
}

#endif /* DUO_ABI_H */
