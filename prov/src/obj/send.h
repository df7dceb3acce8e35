/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The arguments that fi/calls.c passes to tx/send.c for a send. Lock: none. */
#ifndef DUO_OBJ_SEND_H
#define DUO_OBJ_SEND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <rdma/fabric.h>

#include "near/near.h"

enum duo_send_variant {
	DUO_SEND,		/* one buffer, with or without remote CQ data */
	DUO_SEND_INJECT, /* one buffer; an inject, which has no completion */
	DUO_SEND_VECTOR,	/* several buffers: fi_sendv, fi_tsendv */
	DUO_SEND_FLAGS,		/* fi_sendmsg, fi_tsendmsg */
};

struct duo_send {
	enum duo_send_variant variant;
	struct near_msg msg; /* the message; msg.payload: the first buffer */
	const struct iovec *iov;
	void **desc;		/* descriptors of the buffers; NULL: none */
	size_t count;
	fi_addr_t dest;
	uint64_t flags;	/* flags of the call, or the endpoint's default flags */
	void *context;
};

#endif /* DUO_OBJ_SEND_H */
