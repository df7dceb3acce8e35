/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint of ofi_duo over the real near. Its peer is a port of near in the
 * same process, which records the last message.
 */
#ifndef NEAR_FIXTURE_H
#define NEAR_FIXTURE_H

#include "fixture.h"
#include "transport/near/near_ep.h"

#define PEER 4711		/* the peer's core address */
#define LARGE (1 << 20)

extern struct rig {
	struct near_port *port;
	struct duo_publication pub;
	struct near_peer *us;
	struct near_msg msg;		/* the message received last */
	char payload[64];
	int arrived, received, sent;
	int err;
	/* called by near_sink.arrived() for a message with NEAR_DEVICE */
	int (*fetch)(struct near_peer *source, const struct near_msg *msg);
	/* called by near_sink.unload() */
	int (*unload)(const void *from, void *host, size_t len);
} rig;
extern const struct near_sink rig_sink;

extern fi_addr_t peer;
extern char large[LARGE], got[LARGE];

/*
 * Opens a port of near with rig_sink. Stores the port's near_peer that is fx.ep
 * in *us.
 */
struct near_port *rig_open_port(struct near_peer **us);

/*
 * Setups for UNIT_CASE(). near_setup() publishes the peer and inserts its
 * address; near_setup_alone() leaves both to the test.
 */
void near_setup(void);
void near_setup_alone(void);
/* near_setup_alone() with these attributes */
void near_open_as(const struct fixture_attr *attr);
void near_setup_onesided(void);
/* near_setup() without a lock (FI_THREAD_DOMAIN), for the fast path. */
void near_setup_unlocked(void);
/* near_setup_unlocked(), and sends complete in fx.tx_cq. */
void near_setup_two_cqs(void);
/* near_setup() with FI_HMEM, and LARGE bytes of device memory. */
void near_setup_device(void);
/* near_setup_onesided() with an order between messages and RMA. */
void near_setup_ordered(void);
/* Publishes the peer and inserts its address. */
void near_publish(void);
void near_teardown(void);
void rig_publish(enum duo_transport_kind kind, const struct near_addr *addr);
/* rig_publish() with the address of the peer's port */
void rig_publish_port(void);
/* Closes the peer's port and withdraws its record. */
void rig_end(void);
/*
 * Opens a new port for the peer, and publishes it with the peer's core address.
 */
void rig_again(void);

/* The peer sends a message, with TAG. */
void rig_send(const char *text);
/* The peer sends a large message of len bytes. */
void rig_send_len(unsigned int flags, size_t len);
static inline void rig_send_large(unsigned int flags)
{
	rig_send_len(flags, LARGE);
}
void poll_both(int count);
/* Polls both sides until the peer's large message has ended. */
void until_sent(void);
/* Posts a tagged receive of LARGE bytes at got. */
void post_large(void *context);
/* Posts a multi-receive buffer. */
void post_multi(void *context, void *buf, size_t len, void *desc,
		fi_addr_t src);
/* Polls both sides until fx.cq has an entry; checks its context; returns it. */
struct fi_cq_tagged_entry both_entry(void *context);
struct fi_cq_err_entry both_error(void *context, int err);
/* Reads fx.cq until it has an error: that the peer of `context` has failed. */
struct fi_cq_err_entry until_reset(void *context);

#endif /* NEAR_FIXTURE_H */
