/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Packets on the UDP wire that no peer has sent are ignored. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

struct datagram {
	uint64_t secret;
	struct se_pkt pkt;
};

static int socket_fd(struct rig_node *node)
{
	struct se_qp *qp = (struct se_qp *)node->qp;

	return qp->wire->event_fd(qp);
}

static void put(int fd, struct rig_node *to, const struct datagram *forged)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)to->qp->qp_num),
	};

	ck_assert_int_eq(sendto(fd, forged, sizeof(*forged), 0,
				(struct sockaddr *)&sin, sizeof(sin)),
			 sizeof(*forged));
}

/*
 * Returns a packet from a to b. The packet's epoch is later than a's, which
 * would make b's flow fail.
 */
static struct datagram forge(struct rig_node *a, struct rig_node *b)
{
	struct datagram forged = { .secret = se_cfg.secret };

	forged.pkt.magic = SE_PKT_MAGIC;
	forged.pkt.type = SE_PKT_PING;
	forged.pkt.src_qpn = a->qp->qp_num;
	forged.pkt.dst_qpn = b->qp->qp_num;
	forged.pkt.epoch = ((struct se_qp *)a->qp)->epoch + 1000;
	memcpy(forged.pkt.sgid, a->gid.raw, 16);
	return forged;
}

static void exchange(struct rig_node *a, struct rig_node *b)
{
	struct rig_to to = rig_to_node(a, b);
	struct rig_wc wc;

	ck_assert_int_eq(rig_recv(b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(a, &to, 1, 0, 8), 0);
	ck_assert(rig_wait(a->scq, &wc, b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}

START_TEST(forged_packets_are_ignored)
{
	struct rig_node a, b;
	struct datagram forged;
	struct se_flow *flow;
	uint32_t epoch, i;
	struct se_qp *qp;
	int fd;

	rig_wire(RIG_UDP);
	rig_env("SOFTEFA_SECRET", "between us");
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	qp = (struct se_qp *)b.qp;
	exchange(&a, &b);
	flow = se_flow_find(qp, &a.gid, a.qp->qp_num);
	epoch = flow->peer_epoch;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_ge(fd, 0);
	forged = forge(&a, &b);
	/* from another socket: ignored */
	put(fd, &b, &forged);
	/* from the socket of a, with a wrong secret: ignored */
	forged.secret++;
	put(socket_fd(&a), &b, &forged);
	/* with the names of a thousand missing peers: ignored */
	forged.secret--;
	forged.pkt.type = SE_PKT_SEND;
	for (i = 0; i < 1000; i++) {
		forged.pkt.sgid[13] = (uint8_t)i;
		put(fd, &b, &forged);
		rig_progress(&b);
	}
	ck_assert_uint_eq(rig_stats(&b).forged, 1002);
	ck_assert_uint_eq(qp->flow_count, 1);
	ck_assert_uint_eq(flow->peer_epoch, epoch);
	exchange(&a, &b);
	/*
	 * From a's socket with the secret: the flow fails. So the packets above
	 * were ignored because of their socket or secret.
	 */
	forged = forge(&a, &b);
	put(socket_fd(&a), &b, &forged);
	rig_progress(&b);
	ck_assert_uint_ne(flow->peer_epoch, epoch);
	close(fd);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

#define FORGED_INPUTS 5000	/* default of TORTURE_INPUTS */
#define FORGED_DATA 512		/* largest number of bytes behind a header */

static uint64_t forged_number(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : usual;
}

/* Sends a header with the right secret and some random bytes, then data. */
static void put_garbage(struct rig_node *a, struct rig_node *b,
			unsigned int *seed)
{
	struct {
		struct datagram head;
		uint8_t data[FORGED_DATA];
	} forged = { .head = forge(a, b) };
	size_t len = sizeof(forged.head) + rand_r(seed) % FORGED_DATA;
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)b->qp->qp_num),
	};
	struct se_flow *flow = se_flow_find((struct se_qp *)b->qp, &a->gid,
					    a->qp->qp_num);
	uint8_t *bytes = (uint8_t *)&forged.head.pkt;
	int i;

	forged.head.pkt.type = (uint8_t)(rand_r(seed) % (SE_PKT_TYPES + 1));
	forged.head.pkt.len = (uint32_t)(len - sizeof(forged.head));
	forged.head.pkt.epoch -= 1000;
	forged.head.pkt.seq = (uint32_t)rand_r(seed) % 64;
	forged.head.pkt.op_id = (uint32_t)rand_r(seed) % 8;
	forged.head.pkt.op_len = (uint32_t)rand_r(seed) % 1000;
	if (flow)
		forged.head.pkt.stream = flow->peer_epoch;
	for (i = rand_r(seed) % 4; i--;)
		bytes[4 + rand_r(seed) % (sizeof(struct se_pkt) - 4)] =
			(uint8_t)(rand_r(seed) % 3 ? rand_r(seed) : 0xff);
	if (rand_r(seed) % 16 == 0)
		len = rand_r(seed) % sizeof(forged.head);
	sendto(socket_fd(a), &forged, len, MSG_DONTWAIT,
	       (struct sockaddr *)&sin, sizeof(sin));
}

/*
 * A peer with the secret sends random bytes. No process may crash, and other
 * peers must get their messages.
 */
START_TEST(garbage_of_peer_is_rejected)
{
	uint64_t inputs = forged_number("TORTURE_INPUTS", FORGED_INPUTS), i;
	unsigned int seed = (unsigned int)forged_number("TORTURE_SEED", 1);
	struct rig_node a, b, c;
	struct rig_wc wc;

	rig_wire(RIG_UDP);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	rig_open(&c, NULL);
	exchange(&a, &b);
	exchange(&c, &b);
	for (i = 0; i < inputs; i++) {
		if (i % 32 == 0)
			rig_recv(&b, 2, 0, 64);
		put_garbage(&a, &b, &seed);
		rig_progress(&b);
		rig_progress(&a);
		while (rig_poll(b.rcq, &wc) || rig_poll(b.scq, &wc))
			;
	}
	fprintf(stderr, "torture: fuzz: packets: %lu inputs\n",
		(unsigned long)inputs);
	rig_close(&a);
	rig_close(&c);
	rig_close(&b);
}
END_TEST

/* By default the socket is bound to the loopback address. */
START_TEST(default_address_is_loopback)
{
	static const struct {
		const char *addr;
		uint8_t first;
	} rows[] = { { "", 127 }, { "127.0.0.2", 127 }, { "nonsense", 127 } };
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	struct rig_node a;

	rig_wire(RIG_UDP);
	rig_env("SOFTEFA_ADDR", rows[_i].addr);
	rig_open(&a, NULL);
	ck_assert_int_eq(getsockname(socket_fd(&a), (struct sockaddr *)&sin,
				     &len), 0);
	ck_assert_uint_eq(ntohl(sin.sin_addr.s_addr) >> 24, rows[_i].first);
	ck_assert_uint_eq(a.gid.raw[12], rows[_i].first);
	rig_close(&a);
}
END_TEST

Suite *suite_forged(void)
{
	Suite *suite = suite_create("forged");
	TCase *tc = tcase_create("forged");

	tcase_add_test(tc, forged_packets_are_ignored);
	tcase_set_timeout(tc, 3600);
	tcase_add_test(tc, garbage_of_peer_is_rejected);
	tcase_add_loop_test(tc, default_address_is_loopback, 0, 3);
	suite_add_tcase(suite, tc);
	return suite;
}
