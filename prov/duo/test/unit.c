/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"
#include "unit.h"

static char unit_dir[64];

int unit_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	/* what is tested warns on purpose */
	setenv("FI_LOG_LEVEL", "0", 0);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

uint64_t unit_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

const char *unit_dir_make(void)
{
	snprintf(unit_dir, sizeof(unit_dir), "/tmp/ofi_duo-unit.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(unit_dir));
	duo_params.registry_dir = unit_dir;
	return unit_dir;
}

static bool unit_is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

void unit_dir_remove(void)
{
	DIR *dir = opendir(unit_dir);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (unit_is_dot(entry->d_name))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
	rmdir(unit_dir);
}

int unit_dir_count(void)
{
	DIR *dir = opendir(unit_dir);
	struct dirent *entry;
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		count += !unit_is_dot(entry->d_name);
	closedir(dir);
	return count;
}

enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *shm_name)
{
	struct duo_publication self = { .shm_name = "unit-self" };
	enum fi_duo_reason reason;

	self.fd = memfd_create("unit-self", MFD_CLOEXEC);
	ck_assert_int_ge(self.fd, 0);
	ck_assert_int_eq(ftruncate(self.fd, RECORD_FILE), 0);
	reason = duo_registry_lookup(dir, addr, len, &self, shm_name);
	close(self.fd);
	return reason;
}
