/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "softefa.h"

/* The finalizer of splitmix64: each bit depends on all input bits. */
static uint64_t se_fault_mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

uint64_t se_fault_hash(enum se_fault kind, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t hash = se_fault_mix(se_cfg.seed + 0x9e3779b97f4a7c15ull);

	hash = se_fault_mix(hash ^ ((uint64_t)kind << 32 | a));
	return se_fault_mix(hash ^ ((uint64_t)b << 32 | c));
}

bool se_fault(enum se_fault kind, uint32_t a, uint32_t b, uint32_t c)
{
	double prob = se_cfg.fault[kind];

	if (prob <= 0)
		return false;
	return (double)(se_fault_hash(kind, a, b, c) >> 11) * 0x1p-53 < prob;
}
