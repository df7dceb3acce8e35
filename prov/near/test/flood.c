/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages that nobody has asked for, more than are kept: where somebody waits
 * for what comes behind them, it comes.
 */

#include "link/proc.h"
#include "recv_side.h"

static void flood_setup(void)
{
	near_params.cma = 0;
	recv_setup();
}

/* Until what may be unexpected is used up, and then the ring. */
static void flood(fi_addr_t to, size_t len)
{
	static char small[4000];
	struct fi_cq_tagged_entry entry;
	int refused = 0;

	while (refused < 1000) {
		if (fi_tinject(ep[1], small, len, to, 2))
			refused++;
		fi_cq_read(cq[1], &entry, 1);
		ck_assert_int_eq(fi_cq_read(cq[0], &entry, 1), -FI_EAGAIN);
	}
}

/*
 * A large message, from the flooded one to the flooding one or the other way,
 * whose end comes behind messages that nobody has asked for, more than there is
 * memory for.
 */
START_TEST(flooded)
{
	uint64_t end = near_now_ms() + 10000;
	fi_addr_t to = recv_insert(ep[0]);
	struct fi_cq_tagged_entry entry;
	static char out[1 << 18], in[1 << 18];

	if (_i)
		ck_assert(!fi_tsend(ep[1], out, sizeof(out), NULL, to, 1, out));
	flood(to, 4000);
	ck_assert(!fi_trecv(ep[!_i], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0,
			    in));
	if (!_i)
		ck_assert(!fi_tsend(ep[0], out, sizeof(out), NULL, peer, 1,
				    out));
	while (fi_cq_read(cq[0], &entry, 1) != 1) {
		ck_assert_uint_lt(near_now_ms(), end);
		fi_cq_read(cq[1], NULL, 0);
	}
	ck_assert_ptr_eq(entry.op_context, _i ? in : out);
	/* nothing is under way: the limit holds again */
	flood(to, 4000);
	recv_close(1);
}
END_TEST

/* A receive, named or from anywhere, for a message behind all of those. */
START_TEST(behind_flood)
{
	uint64_t end = near_now_ms() + 10000;
	fi_addr_t to = recv_insert(ep[0]);
	size_t len = _i & 2 ? 8 : 4000;	/* of which there are many more */
	struct fi_cq_tagged_entry entry;
	bool sent = false;
	char in[8];

	flood(to, len);
	ck_assert(!fi_trecv(ep[0], in, sizeof(in), NULL,
			    _i & 1 ? FI_ADDR_UNSPEC : peer, 1, 0, in));
	while (fi_cq_read(cq[0], &entry, 1) != 1) {
		ck_assert_uint_lt(near_now_ms(), end);
		sent = sent || !fi_tinject(ep[1], "behind", 7, to, 1);
		fi_cq_read(cq[1], NULL, 0);
	}
	ck_assert_ptr_eq(entry.op_context, in);
	ck_assert_str_eq(in, "behind");
	flood(to, len);
	recv_close(1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("flood");
	TCase *tcase = tcase_create("in pieces");

	tcase_add_checked_fixture(tcase, flood_setup, recv_teardown);
	tcase_add_loop_test(tcase, flooded, 0, 2);
	tcase_add_loop_test(tcase, behind_flood, 0, 4);
	suite_add_tcase(suite, tcase);
	return unit_run(suite);
}
