/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Multi-receive buffers over the fakes; peers on either path. */
#ifndef MULTI_FIXTURE_H
#define MULTI_FIXTURE_H

#include "fixture.h"

#define MIN_LEFT 8	/* FI_OPT_MIN_MULTI_RECV in these tests */

/* A buffer; its address is the context. */
struct multi {
	char buf[64];
	size_t at;	/* where the next message is expected */
};

extern struct multi multi[3];

/* For UNIT_CASE(); the second after fixture_try(). */
void multi_setup(void);
void multi_open(const struct fixture_attr *attr);
void multi_peers(void);

ssize_t multi_try(struct multi *m, size_t len, fi_addr_t src, uint64_t flags);
void multi_post(struct multi *m, size_t len);
/* Posts m for messages of this path: to the core, if it is the core's. */
void multi_post_for(int path, struct multi *m, size_t len);
/* Posts m; the core receives "far" into it until fake_core_release(). */
void multi_post_receiving(struct multi *m, size_t len);
/* Posts an untagged wildcard receive of a whole slot. */
void multi_post_single(struct slot *slot);
/* Delivers an untagged message over the path. */
void multi_arrive(int path, const char *text);
static inline void multi_near(const char *text)
{
	multi_arrive(FI_DUO_LOCAL, text);
}
static inline void multi_far(const char *text)
{
	multi_arrive(FI_DUO_CORE, text);
}
/* Asserts the next message, after the previous one; released: last one. */
void multi_expect(struct multi *m, const char *text, fi_addr_t src,
		  bool released);
/* Asserts a separate entry for the release or cancellation. */
void multi_expect_released(struct multi *m);
void multi_expect_canceled(struct multi *m);
/* Asserts that no completion comes, and no entry is in use. */
void multi_expect_idle(void);

#endif /* MULTI_FIXTURE_H */
