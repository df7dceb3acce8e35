/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint of ofi_duo over the real near, and a port of this process as its
 * peer, which records the last message that it received.
 */
#ifndef NEAR_FIXTURE_H
#define NEAR_FIXTURE_H

#include "fixture.h"
#include "transport/near/near_ep.h"

#define PEER 4711		/* its core address */
#define LARGE (1 << 20)

extern struct rig {
	struct near_port *port;
	struct duo_publication pub;
	struct near_peer *us;
	struct near_msg msg;		/* the last */
	char payload[64];
	int arrived, received, sent;
	int err;
	void *cookie;
} rig;
extern const struct near_sink rig_sink;

extern fi_addr_t peer;
extern char large[LARGE], got[LARGE];

/* For UNIT_CASE(): with the peer published and inserted, or neither. */
void near_setup(void);
void near_setup_alone(void);
/* As near_setup_alone(), with these attributes. */
void near_open_as(const struct fixture_attr *attr);
void near_setup_onesided(void);
/* As near_setup(), without a lock: small messages take the fast path. */
void near_setup_unlocked(void);
/* In addition, sends complete in fx.tx_cq. */
void near_setup_two_cqs(void);
/* As near_setup(), with FI_HMEM, and device memory of LARGE bytes. */
void near_setup_device(void);
/* As near_setup(), with an order between messages and RMA, not the peer. */
void near_setup_ordered(void);
/* Publishes and inserts the peer. */
void near_publish(void);
void near_teardown(void);
void rig_publish(enum duo_transport_kind kind, const struct near_addr *addr);
/* Closes the peer's port and withdraws its record. */
void rig_end(void);

/* Send a message: with TAG; and with these flags. */
void rig_send(const char *text);
void rig_send_large(unsigned int flags);
/* Sends len bytes as a large message. */
void rig_send_len(unsigned int flags, size_t len);
/* Returns the completion, of this context, after polls of both sides. */
struct fi_cq_tagged_entry both_entry(void *context);
struct fi_cq_err_entry both_error(void *context, int err);
enum fi_duo_path path_of(enum fi_duo_reason *reason);

#endif /* NEAR_FIXTURE_H */
