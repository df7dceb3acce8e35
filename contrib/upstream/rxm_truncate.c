/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A receive that is too small for a large message must end once, with
 * FI_ETRUNC. ofi_rxm reports FI_ETRUNC, and a completion as well.
 */

#include "repro.h"

static const struct repro_size sizes[] = {
	{ 65536, 4096, false },
	{ 65536, 4096, true },
	{ 1048576, 65535, false },
	{ 1048576, 65535, true },
};

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;

	repro_truncate("tcp;ofi_rxm", repro_size);
	if (repro_next(0, 5000, &entry, &err) != REPRO_ERROR)
		repro_shown("no error is reported");
	switch (repro_next(0, 2000, &entry, &err)) {
	case REPRO_NONE:
		break;
	case REPRO_DONE:
		repro_shown("a second completion");
	case REPRO_ERROR:
		repro_shown("a second error, %s", fi_strerror(err.err));
	}
}

int main(void)
{
	return repro_run_sizes("tcp;ofi_rxm", ", once more", sizes,
			       sizeof(sizes) / sizeof(sizes[0]), test);
}
