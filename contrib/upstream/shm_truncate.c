/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message larger than its receive must end with FI_ETRUNC. shm
 * (prov/shm/src/smr_progress.c) crashes, loops, or never completes the receive.
 * This depends on the size, and on whether message or receive comes first.
 */

#include "repro.h"

static const struct repro_size sizes[] = {
	{ 64, 8, false },
	{ 64, 8, true },
	{ 4096, 100, false },
	{ 4096, 100, true },
	{ 65536, 4096, false },
	{ 65536, 4096, true },
	{ 1048576, 65535, false },
	{ 1048576, 65535, true },
};

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;

	repro_truncate("shm", repro_size);
	switch (repro_next(0, 3000, &entry, &err)) {
	case REPRO_NONE:
		repro_shown("it never completes");
	case REPRO_DONE:
		repro_shown("no error");
	case REPRO_ERROR:
		if (err.err != FI_ETRUNC)
			repro_shown("error %d", err.err);
	}
}

int main(void)
{
	return repro_run_sizes("shm", "", sizes,
			       sizeof(sizes) / sizeof(sizes[0]), test);
}
