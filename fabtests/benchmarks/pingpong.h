/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What rdm_pingpong and rdm_tagged_pingpong share. */
#ifndef FT_PINGPONG_H
#define FT_PINGPONG_H

#include <stdbool.h>

/* Every variant, every size, expected and unexpected, verified. */
void ft_pingpong(bool tagged);
/* Prints "size median-half-round-trip-in-us" per size; no verification. */
void ft_latency(bool tagged);

#endif /* FT_PINGPONG_H */
