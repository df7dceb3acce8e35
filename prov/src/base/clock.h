/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The data path's monotonic clock. Unit tests link another one (unit.h). */
#ifndef DUO_CLOCK_H
#define DUO_CLOCK_H

#include <stdint.h>

uint64_t duo_clock_us(void);
/* A cheaper clock with a resolution of some milliseconds. */
uint64_t duo_clock_coarse_ms(void);

#endif /* DUO_CLOCK_H */
