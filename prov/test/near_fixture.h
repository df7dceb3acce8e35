/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint of ofi_duo over near, the real one, and a port of this process
 * as its peer, which writes down the last thing that came to it.
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
/* As the second, an endpoint opened so. */
void near_open_as(const struct fixture_attr *attr);
void near_setup_onesided(void);
/* The first, where the application serialises: small messages go short. */
void near_setup_unlocked(void);
/* And sends complete in fx.tx_cq. */
void near_setup_two_cqs(void);
/* The first, with FI_HMEM, and device memory of LARGE bytes. */
void near_setup_device(void);
/* The first, with an order between messages and RMA: the peer has none. */
void near_setup_ordered(void);
/* The peer is published and inserted. */
void near_publish(void);
void near_teardown(void);
void rig_publish(enum duo_transport_kind kind, const struct near_addr *addr);
/* The peer closes its port and withdraws its record. */
void rig_end(void);

/* Tagged with TAG, resp. untagged unless flags say otherwise. */
void rig_send(const char *text);
void rig_send_large(unsigned int flags);
/* So much of large, as a large message. */
void rig_send_len(unsigned int flags, size_t len);
/* What comes after polls of both sides, of this context. */
struct fi_cq_tagged_entry both_entry(void *context);
struct fi_cq_err_entry both_error(void *context, int err);
enum fi_duo_path path_of(enum fi_duo_reason *reason);

#endif /* NEAR_FIXTURE_H */
