/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "base/proc.h"

uint64_t duo_clock_us(void)
{
	return duo_now_ns() / 1000;
}

uint64_t duo_clock_coarse_ms(void)
{
	return duo_now_ms();
}
