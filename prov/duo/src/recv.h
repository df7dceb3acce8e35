/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receive calls: recv.c, peek.c, and the part of srx.c that they need. */
#ifndef DUO_RECV_H
#define DUO_RECV_H

#include "duo.h"

/* One receive call, whatever its variant. */
struct duo_recv {
	enum duo_rx_kind kind;
	const struct iovec *iov;
	void **desc;
	size_t count;
	struct duo_want want;
	void *context;
	uint64_t flags;
	struct duo_rx *multi;	/* a piece of this buffer */
};

/* Posts an entry: here, and on the core now, later or never. It is released
 * if that fails. */
int duo_recv_place(struct duo_rx *rx);
/* Once on the core it cannot be taken back. */
bool duo_recv_final(const struct duo_rx *rx);
ssize_t duo_recv_peek(struct duo_ep *ep, const struct duo_recv *recv);
ssize_t duo_recv_claim(struct duo_ep *ep, const struct duo_recv *recv);
void duo_recv_fill(struct duo_rx *rx, const struct duo_recv *recv);
/* Starts unexpected, held or claimed message rx into recv's buffers.
 * Nothing has changed if it fails (-FI_ENOMEM). */
int duo_recv_start(struct duo_rx *rx, const struct duo_recv *recv);
/* Can a message for *want come over the core? */
bool duo_recv_core_may(const struct duo_ep *ep, const struct duo_want *want);
/* Posted now, is rx not given to the core, neither at once nor later? */
bool duo_recv_near(const struct duo_rx *rx);

#endif /* DUO_RECV_H */
