/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#ifndef FT_PINGPONG_H
#define FT_PINGPONG_H

#include <stdbool.h>

/* Exchanges and verifies messages of all sizes, by all calls. */
void ft_pingpong(bool tagged);
/* Prints each size in bytes, and the median of half the round trip in us. */
void ft_latency(bool tagged);

#endif /* FT_PINGPONG_H */
