/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* av/route.h: the word of an address, and the route that it yields */

#include "av/route.h"
#include "unit.h"

static const struct {
	const char *name;
	enum duo_route_state state;
	fi_addr_t index;
} word_cases[] = {
	{ "undecided, first of shm", DUO_ROUTE_UNDECIDED, 0 },
	{ "core, known to shm", DUO_ROUTE_CORE, 5 },
	{ "shm, first", DUO_ROUTE_LOCAL, 0 },
	{ "shm, last", DUO_ROUTE_LOCAL, DUO_SHM_PEERS - 1 },
};

UNIT_CASE("word", NULL, NULL);

UNIT_LOOP(word_keeps_state_and_address, 0, ARRAY_SIZE(word_cases))
{
	uint64_t word = duo_route_word_of(word_cases[_i].state,
					  word_cases[_i].index);

	ck_assert_msg(duo_route_state(word) == word_cases[_i].state, "%s",
		      word_cases[_i].name);
	ck_assert_msg(duo_route_mapped(word), "%s", word_cases[_i].name);
	ck_assert_msg(duo_route_index(word) == word_cases[_i].index,
		      "%s", word_cases[_i].name);
}

UNIT_TEST(state_without_index_is_valid)
{
	ck_assert(!duo_route_mapped(DUO_ROUTE_NONE));
	ck_assert(!duo_route_mapped(DUO_ROUTE_UNDECIDED));
	ck_assert(!duo_route_mapped(DUO_ROUTE_CORE));
	ck_assert_int_eq(duo_route_state(DUO_ROUTE_CORE), DUO_ROUTE_CORE);
	ck_assert_int_eq(DUO_ROUTE_NONE, 0); /* zeroed pages have no routes */
}

static duo_route_word words[8];
static struct duo_av av;
static struct duo_domain domain;
static struct fid_ep core_ep, shm_ep;
static struct duo_ep ep;

static void setup(void)
{
	ep = (struct duo_ep) {
		.domain = &domain,
		.av = &av,
		.route = words,
		.route_size = ARRAY_SIZE(words),
		.path_ep = { &core_ep, &shm_ep },
		.tx.core = &core_ep,
	};
}

enum target { NOWHERE, CORE, SHM };
#define SHM_8 (9ULL << DUO_ROUTE_INDEX_SHIFT)

static const struct {
	const char *name;
	uint64_t word;
	bool no_shm;
	enum target target;
} route_cases[] = {
	{ "not in the AV", DUO_ROUTE_NONE, false, NOWHERE },
	{ "core", DUO_ROUTE_CORE, false, CORE },
	{ "core, known to shm", SHM_8 | DUO_ROUTE_CORE, false, CORE },
	{ "shm", SHM_8 | DUO_ROUTE_LOCAL, false, SHM },
	{ "shm, endpoint without it", SHM_8 | DUO_ROUTE_LOCAL, true, CORE },
	{ "undecided, endpoint without shm", DUO_ROUTE_UNDECIDED, true, CORE },
};

UNIT_CASE("route", setup, NULL);

UNIT_LOOP(route, 0, ARRAY_SIZE(route_cases))
{
	const char *name = route_cases[_i].name;
	struct duo_route to;

	words[3] = route_cases[_i].word;
	if (route_cases[_i].no_shm)
		ep.path_ep[FI_DUO_LOCAL] = NULL;
	to = duo_route(&ep, 3);
	switch (route_cases[_i].target) {
	case NOWHERE:
		ck_assert_msg(!to.ep, "%s", name);
		break;
	case CORE:
		ck_assert_msg(to.ep == &core_ep && to.addr == 3 &&
			      to.path == FI_DUO_CORE, "%s", name);
		break;
	case SHM:
		ck_assert_msg(to.ep == &shm_ep && to.addr == 8 &&
			      to.path == FI_DUO_LOCAL, "%s", name);
	}
}

UNIT_TEST(unspecified_address_has_no_route)
{
	ck_assert_ptr_null(duo_route(&ep, FI_ADDR_UNSPEC).ep);
	ck_assert_ptr_null(duo_route(&ep, FI_ADDR_NOTAVAIL).ep);
}

UNIT_TEST(address_beyond_table_has_no_route)
{
	ck_assert_ptr_null(duo_route(&ep, DUO_AV_MAX).ep);
	ck_assert_ptr_null(duo_route(&ep, FI_ADDR_UNSPEC - 1).ep);
}

UNIT_TEST(endpoint_not_enabled_has_no_route)
{
	words[3] = DUO_ROUTE_CORE;
	ep.route = NULL;
	ep.route_size = 0;
	ck_assert_ptr_null(duo_route(&ep, 3).ep);
	ck_assert_ptr_null(duo_route(&ep, DUO_AV_MAX).ep);
}
