/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Data that depends on position and seed, so that shifted data is detected. */

#include "ft.h"

static inline uint8_t ft_byte(size_t i, unsigned int seed)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16) * 7 +
			 seed * 29 + (seed >> 8));
}

void ft_fill(void *buf, size_t len, unsigned int seed)
{
	uint8_t *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = ft_byte(i, seed);
}

void ft_verify(const void *buf, size_t len, unsigned int seed,
	       const char *what)
{
	const uint8_t *at = buf;
	uint8_t diff = 0;
	size_t i;

	for (i = 0; i < len; i++)
		diff |= at[i] ^ ft_byte(i, seed);
	if (!diff)
		return;
	for (i = 0; at[i] == ft_byte(i, seed); i++)
		;
	FT_DIE("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, len,
	       at[i], ft_byte(i, seed));
}
