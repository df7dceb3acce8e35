/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "multi_fixture.h"

struct multi multi[3];

static void multi_peers(void)
{
	size_t min = MIN_LEFT;

	pair_insert();
	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_MIN_MULTI_RECV, min), 0);
}

void multi_open(const struct fixture_attr *attr)
{
	fixture_start(attr);
	multi_peers();
}

void multi_setup(void)
{
	fixture_setup();
	multi_peers();
}

ssize_t multi_try(struct multi *m, size_t len, fi_addr_t src, uint64_t flags)
{
	const struct iovec iov = { m->buf, len };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = src,
		.context = m,
	};

	ck_assert_uint_le(len, sizeof(m->buf));
	memset(m->buf, 0, sizeof(m->buf));
	m->at = 0;
	return fi_recvmsg(fx.ep, &msg, flags | FI_MULTI_RECV);
}

void multi_post(struct multi *m, size_t len)
{
	ck_assert_int_eq(multi_try(m, len, FI_ADDR_UNSPEC, FI_COMPLETION), 0);
}

void multi_post_for(int path, struct multi *m, size_t len)
{
	multi_post(m, len);
	if (path == FI_DUO_CORE)
		ck_assert_int_eq(duo_lazy_flush(fixture_ep()), 0);
}

void multi_post_receiving(struct multi *m, size_t len)
{
	multi_post(m, len);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	multi_far("far");
}

void multi_arrive(int path, const char *text)
{
	arrive(path, DUO_MSG, text);
}

void multi_expect(struct multi *m, const char *text, fi_addr_t src,
		  bool released)
{
	struct fi_cq_tagged_entry entry = expect_entry(m, src);

	ck_assert_uint_eq(entry.len, strlen(text));
	ck_assert_ptr_eq(entry.buf, m->buf + m->at);
	ck_assert_mem_eq(entry.buf, text, entry.len);
	ck_assert_uint_eq(entry.flags & (FI_RECV | FI_MSG), FI_RECV | FI_MSG);
	ck_assert_uint_eq(!!(entry.flags & FI_MULTI_RECV), released);
	m->at += entry.len;
}

void multi_expect_released(struct multi *m)
{
	struct fi_cq_tagged_entry entry = expect_entry(m, FI_ADDR_NOTAVAIL);

	ck_assert_uint_eq(entry.flags, FI_MULTI_RECV);
	ck_assert_uint_eq(entry.len, 0);
	ck_assert_ptr_null(entry.buf);
}

void multi_expect_canceled(struct multi *m)
{
	struct fi_cq_err_entry entry = expect_error(m, FI_ECANCELED);

	ck_assert_uint_eq(entry.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
}

void multi_expect_idle(void)
{
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->multi.open, 0);
	ck_assert(TAILQ_EMPTY(&fixture_ep()->multi.buffers));
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.retired_count);
	ck_assert_uint_eq(fake_core_posted(), 0);
}
