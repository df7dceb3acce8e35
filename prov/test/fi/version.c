/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The version check of fi/entry_duo.c: whether the module returns a provider.
 * fi_version() and the log of this program replace libfabric's.
 */

#include <stdio.h>

#include "base/abi.h"
#include "near/logged.h"
#include "unit.h"

struct fi_provider *fi_prov_ini(void);

static uint32_t running = DUO_FI_VERSION;

uint32_t fi_version(void)
{
	return running;
}

UNIT_CASE("gate", NULL, NULL);

UNIT_TEST(same_version_returns_provider)
{
	ck_assert_ptr_eq(fi_prov_ini(), &duo_prov);
	ck_assert_int_eq(logged_lines, 0);
}

/*
 * Open MPI compares this version with that of efa. A smaller number would mean
 * an efa that is too old.
 */
UNIT_TEST(provider_version_counts_as_libfabric)
{
	ck_assert(FI_VERSION_GE(duo_prov.version, FI_VERSION(112, 0)));
}

static const struct {
	const char *name;
	/* difference from the version for which ofi_duo was built */
	int major, minor;
	enum duo_transport_kind peer;
	bool offered;
} version_cases[] = {
	{"same, shm", 0, 0, DUO_TRANSPORT_SHM, true},
	{"unknown", 0, 50, DUO_TRANSPORT_NEAR, false},
	{"next major", 1, 0, DUO_TRANSPORT_NEAR, false},
	{"previous major", -1, 40, DUO_TRANSPORT_NEAR, false},
};

/* If the module returns no provider, a warning names both versions. */
UNIT_LOOP(unsupported_version_returns_no_provider, 0, ARRAY_SIZE(version_cases))
{
	int major = FI_MAJOR_VERSION + version_cases[_i].major;
	int minor = FI_MINOR_VERSION + version_cases[_i].minor;
	const char *name = version_cases[_i].name;
	char built[32], loaded[32];

	running = FI_VERSION(major, minor);
	duo_params.local = version_cases[_i].peer;
	snprintf(built, sizeof(built), "libfabric %d.%d,", FI_MAJOR_VERSION,
		 FI_MINOR_VERSION);
	snprintf(loaded, sizeof(loaded), "by %d.%d:", major, minor);
	if (version_cases[_i].offered) {
		ck_assert_msg(fi_prov_ini() == &duo_prov, "%s", name);
		ck_assert_int_eq(logged_lines, 0);
		return;
	}
	ck_assert_msg(!fi_prov_ini(), "%s", name);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, built) && strstr(logged, loaded), "%s: %s",
		      name, logged);
}

/*
 * duo_abi_same(): true for versions of libfabric with the same public
 * structures. The module accepts these versions, but uses shm only with the
 * version for which ofi_duo was built.
 */
UNIT_TEST(versions_of_group_are_accepted)
{
	struct duo_fabric fabric = { .core_name = "tcp" };

	ck_assert(duo_abi_same(FI_VERSION(2, 1), FI_VERSION(2, 0)));
	ck_assert(duo_abi_same(FI_VERSION(2, 1), FI_VERSION(2, 4)));
	ck_assert(!duo_abi_same(FI_VERSION(2, 1), FI_VERSION(2, 5)));
	ck_assert(duo_abi_same(FI_VERSION(2, 6), FI_VERSION(2, 5)));
	ck_assert(!duo_abi_same(FI_VERSION(2, 6), FI_VERSION(2, 7)));
	ck_assert(duo_abi_same(FI_VERSION(2, 7), FI_VERSION(2, 7)));
	ck_assert(!duo_abi_same(FI_VERSION(1, 17), FI_VERSION(2, 0)));
	/* another version than the one for which ofi_duo was built */
	running = FI_VERSION(2, FI_MINOR_VERSION == 4 ? 3 : 4);
	ck_assert_int_eq(fi_prov_ini() == &duo_prov,
			 duo_abi_same(DUO_FI_VERSION, running));
	logged_lines = 0;
	ck_assert_int_eq(duo_transport_shm.fabric_open(&fabric), -FI_ENODATA);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_ptr_nonnull(strstr(logged, "the core carries all"));
}

/* Cores get the newest API version that ofi_duo and libfabric support. */
UNIT_TEST(core_gets_supported_api_version)
{
	ck_assert_uint_eq(duo_api_version(FI_VERSION(1, 4)), FI_VERSION(1, 4));
	ck_assert_uint_eq(duo_api_version(DUO_FI_VERSION), DUO_FI_VERSION);
	ck_assert_uint_eq(duo_api_version(FI_VERSION(FI_MAJOR_VERSION,
						     FI_MINOR_VERSION + 1)),
			  DUO_FI_VERSION);
}

static const struct {
	const char *text;
	bool on;
	enum duo_transport_kind local;
	int warnings;
} local_cases[] = {
	{"near", true, DUO_TRANSPORT_NEAR, 0},
	{"SHM", true, DUO_TRANSPORT_SHM, 0},
	{"off", false, DUO_TRANSPORT_NEAR, 0},
	{"0", true, DUO_TRANSPORT_NEAR, 1},
};

UNIT_LOOP(local_parameter_selects_transport, 0, ARRAY_SIZE(local_cases))
{
	setenv("FI_OFI_DUO_LOCAL", local_cases[_i].text, 1);
	fi_prov_ini();
	ck_assert_int_eq(duo_params.local_on, local_cases[_i].on);
	ck_assert_int_eq(duo_params.local, local_cases[_i].local);
	ck_assert_int_eq(logged_lines, local_cases[_i].warnings);
}

/* A parameter's former name is ignored; the warning has the new name. */
UNIT_TEST(former_parameter_name_warns)
{
	setenv("FI_OFI_DUO_PEER", "shm", 1);
	/* must not warn: a parameter of near, not of ofi_duo */
	setenv("FI_NEAR_YIELD", "1", 1);
	fi_prov_ini();
	ck_assert_int_eq(duo_params.local, DUO_TRANSPORT_NEAR);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, "FI_OFI_DUO_PEER=shm is ignored") &&
		      strstr(logged, "set FI_OFI_DUO_LOCAL"), "%s", logged);
}

static const struct {
	const char *text;
	size_t want;
} number_cases[] = {
	{ "7", 7 }, { "0x40", 64 }, { "0", 1 }, { "2000000", 1000000 },
	{ "abc", 100 }, { "12x", 100 }, { "", 100 }, { "-5", 100 },
	{ "1M", 100 }, { "99999999999999999999", 100 }, { " 7", 100 },
};

/*
 * A value that is no number gives a warning and the default. A number outside
 * the range is clamped.
 */
UNIT_LOOP(invalid_parameter_uses_default, 0, ARRAY_SIZE(number_cases))
{
	const char *text = number_cases[_i].text;
	char want[128];

	setenv("FI_OFI_DUO_DEFER_POLLS", text, 1);
	duo_params.defer_polls = 100;
	ck_assert_ptr_eq(fi_prov_ini(), &duo_prov);
	ck_assert_msg(duo_params.defer_polls == number_cases[_i].want, "\"%s\"",
		      text);
	if (number_cases[_i].want != 100) {
		ck_assert_int_eq(logged_lines, 0);
		return;
	}
	snprintf(want, sizeof(want), "FI_OFI_DUO_DEFER_POLLS=%s is not a "
		 "number, using 100", text);
	ck_assert_int_eq(logged_lines, 1);
	ck_assert_msg(strstr(logged, want) != NULL, "%s", logged);
}
