/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

int main(void)
{
	char dir[64];
	SRunner *runner;
	int failed;

	/*
	 * a directory for this run only, so that runs at the same time neither
	 * remove nor count each other's files
	 */
	snprintf(dir, sizeof(dir), "/dev/shm/softefa-test-%d", (int)getpid());
	setenv("SOFTEFA_DIR", dir, 1);
	/* limit of each test, s: single waits take up to RIG_WAIT_MS */
	setenv("CK_DEFAULT_TIMEOUT", "300", 1);
	runner = srunner_create(suite_srd());
	srunner_add_suite(runner, suite_faults());
	srunner_add_suite(runner, suite_limits());
	srunner_add_suite(runner, suite_rdma());
	srunner_add_suite(runner, suite_peers());
	srunner_add_suite(runner, suite_notify());
	srunner_add_suite(runner, suite_ring());
	srunner_add_suite(runner, suite_strict());
	srunner_add_suite(runner, suite_forged());
	srunner_add_suite(runner, suite_fork());
	srunner_add_suite(runner, suite_dir());
	srunner_add_suite(runner, suite_flows());
	srunner_add_suite(runner, suite_drive());
	srunner_add_suite(runner, suite_rules());
	srunner_add_suite(runner, suite_work_rules());
	srunner_add_suite(runner, suite_ud());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (!access(dir, F_OK)) {
		fprintf(stderr, "%s is left behind\n", dir);
		failed++;
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
