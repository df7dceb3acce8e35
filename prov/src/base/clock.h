/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The monotonic time by which the data path decides. In the unit tests it is
 * the test's (unit.h), so that what they see does not depend on the machine.
 */
#ifndef DUO_CLOCK_H
#define DUO_CLOCK_H

#include <stdint.h>

uint64_t duo_clock_us(void);
/* In steps of some milliseconds, and cheaper. */
uint64_t duo_clock_coarse_ms(void);

#endif /* DUO_CLOCK_H */
