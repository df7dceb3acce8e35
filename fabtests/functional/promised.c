/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Each limit in the info can be used up: inject size, number of buffers, remote
 * CQ data, RMA. With --hook the info is the core's, and near must have the same
 * limits (docs/hook.md).
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_IOV_MAX 16
#define FT_TAG 9
#define FT_PART 257	/* bytes of a buffer */
#define FT_BYTE 0x5a

static struct ft_ep e;
static struct ft_region region;

static size_t ft_most(size_t limit)
{
	return limit < FT_IOV_MAX ? limit : FT_IOV_MAX;
}

/* Fills iov and desc with count adjacent buffers of FT_PART bytes. */
static void ft_parts(struct iovec *iov, void **desc, const struct ft_buf *buf,
		     size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		iov[i].iov_base = buf->ptr + i * FT_PART;
		iov[i].iov_len = FT_PART;
		desc[i] = buf->desc;
	}
}

/* Injects a message, and then overwrites the buffer. */
static void ft_inject(enum ft_tx how, bool tagged, size_t len)
{
	const uint64_t mask = e.info->domain_attr->cq_data_size < 8 ?
		(1ull << 8 * e.info->domain_attr->cq_data_size) - 1 : ~0ull;
	struct ft_xfer x = {
		.len = len, .tag = FT_TAG, .tagged = tagged,
		.data = 0xfedcba9876543210 & mask, .addr = FI_ADDR_UNSPEC,
	};
	struct ft_buf buf;
	struct ft_op op;

	ft_buf_alloc(&e, &buf, len);
	ft_op_reset(&op);
	x.buf = buf.ptr;
	x.desc = buf.desc;
	if (ft.opts.rank) {
		ft_fill(buf.ptr, len, how);
		ft_tx(&e, how, 0, &x, NULL);
		memset(buf.ptr, 0xff, len);
	} else {
		ft_rx(&e, FT_RX_RECV, &x, &op);
		ft_wait(&e, &op);
		ft_verify(buf.ptr, len, how, ft_tx_name[how]);
		FT_CHECK(!ft_tx_has_data(how) || op.data == x.data,
			 "data 0x%lx, not 0x%lx", (long)op.data, (long)x.data);
	}
	ft_barrier();
	ft_buf_free(&buf);
}

/*
 * Returns the inject size of rank 1, the sender. The ranks may differ: the
 * inject size of efa depends on its use of shared memory.
 */
static size_t ft_inject_size(void)
{
	size_t all[FT_MAX_RANKS];

	ft_allgather(&e.info->tx_attr->inject_size, sizeof(all[0]), all);
	return all[1];
}

static void ft_case_promised_injects_arrive(void)
{
	const size_t len = ft_inject_size();

	ft_inject(FT_TX_INJECT, false, len);
	ft_inject(FT_TX_INJECT, true, len);
	ft_inject(FT_TX_INJECTDATA, false, len);
	ft_inject(FT_TX_INJECTDATA, true, len);
	ft_inject(FT_TX_INJECT, true, 1);
}

static void ft_case_promised_buffers_arrive(void)
{
	const size_t rx = e.info->rx_attr->iov_limit;
	const size_t tx = e.info->tx_attr->iov_limit;
	const size_t count = ft_most(tx < rx ? tx : rx);
	struct iovec iov[FT_IOV_MAX];
	void *desc[FT_IOV_MAX];
	struct ft_buf buf;
	struct ft_op op;

	ft_buf_alloc(&e, &buf, FT_PART * count);
	ft_parts(iov, desc, &buf, count);
	ft_op_reset(&op);
	if (ft.opts.rank) {
		ft_fill(buf.ptr, buf.len, 1);
		FT_OK(FT_RETRY(&e, fi_tsendv(e.ep, iov, desc, count,
					     e.peer[0].addr, FT_TAG, &op)));
		ft_tx_counted(&e, 0);
	} else {
		FT_OK(FT_RETRY(&e, fi_trecvv(e.ep, iov, desc, count,
					     FI_ADDR_UNSPEC, FT_TAG, 0, &op)));
	}
	ft_wait(&e, &op);
	if (!ft.opts.rank)
		ft_verify(buf.ptr, buf.len, 1, "message of several buffers");
	ft_barrier();
	ft_buf_free(&buf);
}

static void ft_run_messages(void)
{
	static const struct ft_case cases[] = {
		{ "injects of the promised size arrive",
		  ft_case_promised_injects_arrive },
		{ "messages of the promised number of buffers arrive",
		  ft_case_promised_buffers_arrive },
	};

	ft_open(&e, NULL);
	ft_exchange(&e);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_close(&e);
}

static bool ft_written(size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (region.ptr[i] != FT_BYTE)
			return false;
	return true;
}

static void ft_inject_write(size_t len)
{
	uint8_t *bytes = malloc(len);

	FT_CHECK(bytes, "malloc");
	memset(bytes, FT_BYTE, len);
	FT_OK(FT_REGION_RETRY(&region, fi_inject_write(e.ep, bytes, len,
						       e.peer[0].addr,
						       region.base[0],
						       region.key[0])));
	memset(bytes, 0, len);
	free(bytes);
}

static void ft_run_rma(void)
{
	const struct ft_cfg cfg = { .caps = FI_RMA, .raw = true };
	size_t len;

	ft.phase = "inject_write";
	ft_open(&e, &cfg);
	ft_exchange(&e);
	len = ft_inject_size();
	ft_region_open(&e, &region, (len + 4095) & ~(size_t)4095);
	ft_region_barrier(&region);
	if (ft.opts.rank)
		ft_inject_write(len);
	else
		while (!ft_written(len))
			ft_region_poll(&region);
	ft_region_barrier(&region);
	ft_region_counted(&region, ft.opts.rank, 0, 0);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&e);
}

static void ft_run(void)
{
	setenv("FI_TCP_MAX_INJECT", "16000", 0); /* a limit above near's */
	ft_run_messages();
	ft_run_rma();
}

const struct ft_spec ft_spec = {
	.name = "promised", .nranks = 2, .run = ft_run,
};
