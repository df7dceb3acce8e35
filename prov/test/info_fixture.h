/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A core's info, and hints, for the tests of fi/info.c. */
#ifndef INFO_FIXTURE_H
#define INFO_FIXTURE_H

#include "base/hints.h"
#include "unit.h"

#define COMP_ORDER 1ULL	/* an arbitrary completion order */

#define ONESIDED (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | \
		  FI_REMOTE_WRITE | FI_RMA_EVENT | FI_RMA_PMEM)
#define CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | \
	      FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | \
	      FI_REMOTE_COMM | ONESIDED)
#define RMA_ORDER (FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW)
#define ORDER (FI_ORDER_SAS | RMA_ORDER | 0xff00000000ULL)
#define MIXED_ORDER (FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW)

extern struct fi_info *info;	/* of a core with all capabilities */
extern struct fi_info *hints;	/* without any requirement */

/* Stores a value in a field of an info. */
void info_set(struct fi_info *of, const struct duo_hint *field, uint64_t value);

void info_setup(void);
void info_teardown(void);

#endif /* INFO_FIXTURE_H */
