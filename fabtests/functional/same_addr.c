/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Two ranks in different network namespaces have the same core address and
 * share a registry. Each sends to that address, and must get its own message
 * over its own shared memory. For cores with IP addresses.
 */

#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/ft.h"

#define MESSAGES 20
#define LEN 64
#define PORT 7000

static struct ft_ep e;
static struct ft_buf buf;

static void ft_exchange_messages(void)
{
	struct ft_op tx[MESSAGES], rx[MESSAGES];
	struct ft_xfer x = { .tagged = true, .len = LEN, .desc = buf.desc,
			     .addr = FI_ADDR_UNSPEC };
	int i, self = ft.opts.rank;

	for (i = 0; i < MESSAGES; i++) {
		x.buf = buf.ptr + LEN * i;
		ft_rx(&e, FT_RX_RECV, &x, &rx[i]);
	}
	for (i = 0; i < MESSAGES; i++) {
		x.buf = buf.ptr + LEN * (MESSAGES + i);
		ft_fill(x.buf, x.len, 100 * self + i);
		ft_tx(&e, FT_TX_SEND, self, &x, &tx[i]);
	}
	for (i = 0; i < MESSAGES; i++) {
		ft_wait(&e, &tx[i]);
		ft_wait(&e, &rx[i]);
		ft_verify(buf.ptr + LEN * i, LEN, 100 * self + i, "message");
	}
}

static void ft_run_format(uint32_t format)
{
	const struct sockaddr_in src = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct ft_cfg cfg = {
		.src = &src, .src_len = sizeof(src), .addr_format = format,
	};

	ft_open(&e, &cfg);
	ft_gather(&e);
	FT_CHECK(!memcmp(e.peer[0].name, e.peer[1].name, e.self.namelen),
		 "the addresses differ");
	ft_insert(&e, ft.opts.rank);
	ft_buf_alloc(&e, &buf, 2 * LEN * MESSAGES);
	ft_barrier();
	ft_exchange_messages();
	ft_buf_free(&buf);
	ft_close(&e);
}

static void ft_case_equal_sockaddr_in_stay_apart(void)
{
	ft_run_format(FI_SOCKADDR_IN);
}

/* FI_SOCKADDR does not name the family of the address. */
static void ft_case_equal_sockaddr_stay_apart(void)
{
	ft_run_format(FI_SOCKADDR);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "equal FI_SOCKADDR_IN addresses stay apart",
		  ft_case_equal_sockaddr_in_stay_apart },
		{ "equal FI_SOCKADDR addresses stay apart",
		  ft_case_equal_sockaddr_stay_apart },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "same_addr", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
