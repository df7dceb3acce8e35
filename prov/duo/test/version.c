/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * init.c's version gate: what libfabric gets when it loads the module. This
 * program's fi_version() and log stand before libfabric's own.
 */

#include <stdarg.h>
#include <stdio.h>

#include "unit.h"

struct fi_provider *fi_prov_ini(void);

static uint32_t running;
static int warnings;
static char text[512];

uint32_t fi_version(void)
{
	return running;
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return level == FI_LOG_WARN;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level,
	    enum fi_log_subsys subsys, const char *func, int line,
	    const char *fmt, ...)
{
	va_list args;

	warnings++;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
}

static void setup(void)
{
	running = DUO_FI_VERSION;
}

static void teardown(void)
{
}

START_TEST(same_version)
{
	ck_assert_ptr_eq(fi_prov_ini(), &duo_prov);
	ck_assert_int_eq(warnings, 0);
}
END_TEST

static const struct {
	const char *name;
	int major, minor;	/* more than what it was built for */
} version_cases[] = {
	{ "next minor", 0, 1 },
	{ "next major", 1, 0 },
	{ "1.x", 1 - FI_MAJOR_VERSION, 22 - FI_MINOR_VERSION },
	{ "previous major", -1, 0 },
};

/* One warning with both versions, and no provider. */
START_TEST(other_version)
{
	int major = FI_MAJOR_VERSION + version_cases[_i].major;
	int minor = FI_MINOR_VERSION + version_cases[_i].minor;
	char built[32], loaded[32];

	running = FI_VERSION(major, minor);
	snprintf(built, sizeof(built), "libfabric %d.%d,", FI_MAJOR_VERSION,
		 FI_MINOR_VERSION);
	snprintf(loaded, sizeof(loaded), "by %d.%d:", major, minor);
	ck_assert_ptr_null(fi_prov_ini());
	ck_assert_int_eq(warnings, 1);
	ck_assert_msg(strstr(text, built) && strstr(text, loaded), "%s: %s",
		      version_cases[_i].name, text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("version");
	TCase *tcase = unit_case(suite, "gate", setup, teardown);

	tcase_add_test(tcase, same_version);
	tcase_add_loop_test(tcase, other_version, 0,
			    ARRAY_SIZE(version_cases));
	return unit_run(suite);
}
