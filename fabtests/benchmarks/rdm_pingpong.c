/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_MSG between two ranks: all calls and sizes, verified. -l: latency. */

#include "common/ft.h"
#include "pingpong.h"

static bool latency;

static void ft_opt(int letter, const char *arg)
{
	latency = letter == 'l';
}

static void ft_run(void)
{
	if (latency)
		ft_latency(false);
	else
		ft_pingpong(false);
}

const struct ft_spec ft_spec = {
	.name = "rdm_pingpong", .nranks = 2, .min_ranks = 2, .opts = "l",
	.opt = ft_opt, .run = ft_run,
};
