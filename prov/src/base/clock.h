/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The monotonic clock of the data path. The unit tests link their own clock
 * (unit.h), so that their results do not depend on the machine's speed.
 */
#ifndef DUO_CLOCK_H
#define DUO_CLOCK_H

#include <stdint.h>

uint64_t duo_clock_us(void);
/* A cheaper clock with a granularity of some milliseconds. */
uint64_t duo_clock_coarse_ms(void);

#endif /* DUO_CLOCK_H */
