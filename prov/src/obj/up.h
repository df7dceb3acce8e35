/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Calls of lower layers to higher ones; fi/ops.c has the table. Other such
 * calls go through struct duo_transport (transport/transport.h) and near's
 * sinks. The fast path needs none. Lock: the domain's.
 */
#ifndef DUO_UP_H
#define DUO_UP_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct duo_cq;
struct duo_ep;
struct duo_rx;

struct duo_up {
	/* av/: a peer was identified: resolve its messages. */
	void (*known)(struct duo_ep *ep);
	/* av/: a new process has the address, or none has: the core may now
	 * deliver messages that only the local transport could deliver. */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/* core/: true if the posted rx must wait for a multi-receive buffer. */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: a message has filled a part of a multi-receive buffer. */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* core/: the core's part of the buffer has failed. */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/* core/: the core rejects a buffer's remainder; an error was pushed. */
	void (*refused)(struct duo_rx *rx);
	/* rx/: process all messages that have arrived: duo_cq_progress(). */
	void (*progress)(struct duo_cq *cq);
};

#endif /* DUO_UP_H */
