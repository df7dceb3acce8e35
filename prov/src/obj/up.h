/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What lower layers report upwards; fi/ fills the table in, and every endpoint
 * has it. Other calls upwards go through struct duo_transport (transport/transport.h) and near's
 * sinks. The common message needs none of it. All under the domain's lock.
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
	/* av/: it is known now whose a number is; messages may wait for it. */
	void (*known)(struct duo_ep *ep);
	/* av/: another process has the address, or none; the core may carry
	 * what only the local peer could have carried before. */
	void (*moved)(struct duo_ep *ep, fi_addr_t addr);
	/* core/: has rx, posted, to wait for a multi-receive buffer? */
	bool (*blocked)(const struct duo_rx *rx);
	/* core/: a message is in a multi-receive buffer, */
	void (*done)(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
	/* ... an error has ended what the core had of it, */
	void (*failed)(struct duo_rx *rx, const struct fi_cq_err_entry *entry);
	/* ... the core does not take the rest, which was reported. */
	void (*refused)(struct duo_rx *rx);
	/* rx/: what has come so far is to be known. */
	void (*progress)(struct duo_cq *cq);
};

#endif /* DUO_UP_H */
