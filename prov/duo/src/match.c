/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <assert.h>

#include "match.h"

void duo_match_init(struct duo_match *match)
{
	TAILQ_INIT(&match->posted);
	TAILQ_INIT(&match->unexp);
	match->posted_count = 0;
	match->unexp_count = 0;
}

void duo_match_post(struct duo_match *match, struct duo_rx *rx)
{
	rx->state = DUO_RX_POSTED;
	TAILQ_INSERT_TAIL(&match->posted, rx, link);
	match->posted_count++;
}

/* The caller gives rx its next state. */
void duo_match_unpost(struct duo_match *match, struct duo_rx *rx)
{
	assert(match->posted_count > 0);
	TAILQ_REMOVE(&match->posted, rx, link);
	match->posted_count--;
}

void duo_match_queue(struct duo_match *match, struct duo_rx *rx)
{
	rx->state = DUO_RX_UNEXP;
	TAILQ_INSERT_TAIL(&match->unexp, rx, link);
	match->unexp_count++;
}

void duo_match_unqueue(struct duo_match *match, struct duo_rx *rx)
{
	assert(match->unexp_count > 0 && rx->state == DUO_RX_UNEXP);
	TAILQ_REMOVE(&match->unexp, rx, link);
	match->unexp_count--;
}

struct duo_rx *duo_match_posted(struct duo_match *match, fi_addr_t addr,
				uint64_t tag)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->posted, link) {
		struct duo_want want = duo_rx_want(rx);

		if (duo_want_takes(&want, addr, tag))
			return rx;
	}
	return NULL;
}

struct duo_rx *duo_match_unexp(struct duo_match *match,
			       const struct duo_want *want)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->unexp, link) {
		if (duo_want_takes(want, rx->peer.addr, rx->peer.tag))
			return rx;
	}
	return NULL;
}

struct duo_rx *duo_match_context(struct duo_match *match, void *context)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->posted, link) {
		if (rx->context == context)
			return rx;
	}
	return NULL;
}
