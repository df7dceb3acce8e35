/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The monotonic clocks of the data path. Unit tests replace them. */
#ifndef DUO_CLOCK_H
#define DUO_CLOCK_H

#include <stdint.h>

uint64_t duo_clock_us(void);
/* Cheaper than duo_clock_us(); changes only every few milliseconds. */
uint64_t duo_clock_coarse_ms(void);

#endif /* DUO_CLOCK_H */
