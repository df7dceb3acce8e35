/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions that rdm_pingpong and rdm_tagged_pingpong share. */
#ifndef FT_PINGPONG_H
#define FT_PINGPONG_H

#include <stdbool.h>

/*
 * Exchanges messages by all calls with all sizes, expected and unexpected, and
 * verifies the data.
 */
void ft_pingpong(bool tagged);
/*
 * Prints a line for each size: bytes, and the median of half the round trip in
 * us. Does not verify the data.
 */
void ft_latency(bool tagged);

#endif /* FT_PINGPONG_H */
