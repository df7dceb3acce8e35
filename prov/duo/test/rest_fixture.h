/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A core that rests. The local addresses are the peer's and the endpoint's own. */
#ifndef REST_FIXTURE_H
#define REST_FIXTURE_H

#include "near_fixture.h"

#define REST_US (duo_params.core_rest * 1000)
#define IDLE 4096	/* polls, a pause */
#define STRANGER 815	/* a core address that nobody has published */
#define OWN fake.core.own_addr	/* published by the endpoint */

static inline bool rests(void)
{
	return duo_domain_of(fx.domain)->rest;
}

static inline bool core_has(fi_addr_t core_addr, uint64_t addr)
{
	return fake_core_table(duo_av_core(duo_av_of(fx.av)))
		->addr[core_addr] == addr;
}

static inline void setup_alone(void)
{
	near_setup_resting();
	ck_assert(rests());
}

static inline void setup(void)
{
	setup_alone();
	near_publish();
	ck_assert(rests());
}

static inline void expect_awake(void)
{
	int polls = fake.core.polls;

	poll_cq(300);
	ck_assert(!rests());
	ck_assert_int_gt(fake.core.polls, polls);
}

#endif /* REST_FIXTURE_H */
