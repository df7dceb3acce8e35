/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Usage: PROGRAM [SUITE [CASE]] */

#include <stdlib.h>

#include "suite.h"

int main(int argc, char **argv)
{
	if (argc > 1)
		setenv("CK_RUN_SUITE", argv[1], 1);
	if (argc > 2)
		setenv("CK_RUN_CASE", argv[2], 1);
	return unit_run();
}
