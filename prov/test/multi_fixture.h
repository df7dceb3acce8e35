/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Multi-receive buffers of an endpoint over the fakes, with two peers. */
#ifndef MULTI_FIXTURE_H
#define MULTI_FIXTURE_H

#include "fixture.h"

#define MIN_LEFT 8	/* value of FI_OPT_MIN_MULTI_RECV in these tests */

/* Multi-receive buffer; its address is the context of the receive */
struct multi {
	char buf[64];
	size_t at;	/* offset at which the next message must be */
};

extern struct multi multi[3];

/* Setup for UNIT_CASE() */
void multi_setup(void);
void multi_open(const struct fixture_attr *attr);

ssize_t multi_try(struct multi *m, size_t len, fi_addr_t src, uint64_t flags);
void multi_post(struct multi *m, size_t len);
/*
 * Posts m to receive a message over this path. If the path is FI_DUO_CORE,
 * ofi_duo posts m to the core at once.
 */
void multi_post_for(int path, struct multi *m, size_t len);
/*
 * Posts m to the core, which matches m with the message "far". The core
 * completes m only after fake_core_release().
 */
void multi_post_receiving(struct multi *m, size_t len);
void multi_arrive(int path, const char *text);
static inline void multi_near(const char *text)
{
	multi_arrive(FI_DUO_LOCAL, text);
}
static inline void multi_far(const char *text)
{
	multi_arrive(FI_DUO_CORE, text);
}
/*
 * Asserts text and source of the next completion of m. The text must be
 * directly behind the previous message. "released": the entry has
 * FI_MULTI_RECV.
 */
void multi_expect(struct multi *m, const char *text, fi_addr_t src,
		  bool released);
/* Assert an entry that only reports the release or cancellation of m. */
void multi_expect_released(struct multi *m);
void multi_expect_canceled(struct multi *m);
/* Asserts that there is no completion and no receive entry in use. */
void multi_expect_idle(void);

#endif /* MULTI_FIXTURE_H */
