/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Devices, contexts, queries, protection domains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"
#include "netid.h"

static struct se_dev *se_devs;
static int se_start_err;
static pthread_once_t se_once = PTHREAD_ONCE_INIT;

static int se_dev_init(struct se_dev *dev, int index)
{
	uint32_t qpns = se_roundup_pow2(se_cfg.max_qp);

	dev->index = index;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "efa_%d", index);
	snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%d",
		 index);
	dev->ibv.node_type = IBV_NODE_UNSPECIFIED;
	dev->ibv.transport_type = IBV_TRANSPORT_UNSPECIFIED;
	pthread_mutex_init(&dev->lock, NULL);
	dev->qpn_mask = qpns - 1;
	dev->qpn_taken = calloc(qpns, 1);
	dev->mr = calloc(se_cfg.max_mr + 1, sizeof(*dev->mr));
	dev->ah = calloc(se_cfg.max_ah, sizeof(*dev->ah));
	dev->mr_next = 1;
	dev->ah_gen = 1;
	if (!dev->qpn_taken || !dev->mr || !dev->ah)
		return ENOMEM;
	se_netid_gid(index, &dev->gid);
	se_netid_pci(index, dev->pci, sizeof(dev->pci));
	return 0;
}

/* Initializes the devices, once. On failure the process has no device. */
static void se_start(void)
{
	uint32_t i;

	se_start_err = se_config_read();
	se_fork_init();
	se_devs = calloc(se_cfg.ndev, sizeof(*se_devs));
	if (!se_devs)
		se_start_err = ENOMEM;
	for (i = 0; !se_start_err && i < se_cfg.ndev; i++)
		se_start_err = se_dev_init(&se_devs[i], (int)i);
	if (!se_start_err)
		se_start_err = se_sysfs_make(se_devs, (int)se_cfg.ndev);
	if (se_start_err)
		fprintf(stderr, "softefa: no device: %s\n",
			strerror(se_start_err));
}

__attribute__((destructor)) static void se_end(void)
{
	if (!se_devs || se_start_err || se_forked())
		return;
	se_qps_exit();
	se_dir_remove();
}

SE_EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list;
	uint32_t i;

	pthread_once(&se_once, se_start);
	if (se_start_err) {
		errno = se_start_err;
		return NULL;
	}
	list = calloc(se_cfg.ndev + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (i = 0; i < se_cfg.ndev; i++)
		list[i] = &se_devs[i].ibv;
	if (count)
		*count = (int)se_cfg.ndev;
	return list;
}

SE_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

SE_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

SE_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return ((struct se_dev *)device)->index;
}

SE_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct se_dev *)device)->gid.global.interface_id;
}

SE_EXPORT int ibv_query_device(struct ibv_context *ctx,
			       struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "0.0.0.0");
	attr->node_guid = se_dev_of(ctx)->gid.global.interface_id;
	attr->sys_image_guid = attr->node_guid;
	attr->max_mr_size = 1ull << 40;
	attr->page_size_cap = 0xfffff000;
	attr->vendor_id = 0x1d0f;
	attr->vendor_part_id = 0xefa1;
	attr->hw_ver = 0xefa1;
	attr->max_qp = (int)se_cfg.max_qp;
	attr->max_qp_wr = (int)se_cfg.max_rq_wr;
	attr->max_sge = SE_MAX_SQ_SGE;
	attr->max_sge_rd = SE_MAX_RDMA_SGE;
	attr->max_cq = (int)se_cfg.max_cq;
	attr->max_cqe = SE_MAX_CQE;
	attr->max_mr = (int)se_cfg.max_mr;
	attr->max_pd = (int)se_cfg.max_pd;
	attr->max_ah = (int)se_cfg.max_ah;
	attr->phys_port_cnt = 1;
	return 0;
}

static int se_query_device_ex(struct ibv_context *ctx,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = { 0 };

	ibv_query_device(ctx, &full.orig_attr);
	se_copy_out(attr, size, &full, sizeof(full));
	return 0;
}

SE_EXPORT int efadv_query_device(struct ibv_context *ctx,
				 struct efadv_device_attr *attr,
				 uint32_t inlen)
{
	struct efadv_device_attr full = {
		.max_sq_wr = se_cfg.max_sq_wr,
		.max_rq_wr = se_cfg.max_rq_wr,
		.max_sq_sge = SE_MAX_SQ_SGE,
		.max_rq_sge = SE_MAX_RQ_SGE,
		.inline_buf_size = SE_MAX_INLINE,
		.device_caps = se_cfg.caps,
		.max_rdma_size = se_cfg.caps & SE_CAP_RDMA_READ ? 1u << 30 : 0,
	};

	se_copy_out(attr, inlen, &full, sizeof(full));
	return 0;
}

static int se_query_port(struct ibv_context *ctx, uint8_t port,
			 struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr full = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1,
		.max_msg_sz = se_cfg.mtu,
		.pkey_tbl_len = 1,
		.lmc = 1,
		.active_width = 2,
		.active_speed = 32,
		.phys_state = 5,
		.link_layer = IBV_LINK_LAYER_UNSPECIFIED,
	};

	if (port != 1)
		return EINVAL;
	se_copy_out(attr, size, &full, sizeof(full));
	return 0;
}

SE_EXPORT int ibv_query_port(struct ibv_context *ctx, uint8_t port,
			     struct _compat_ibv_port_attr *attr)
{
	return se_query_port(ctx, port, (struct ibv_port_attr *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

SE_EXPORT int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index,
			    union ibv_gid *gid)
{
	if (port != 1 || index)
		return EINVAL;
	*gid = se_dev_of(ctx)->gid;
	return 0;
}

SE_EXPORT int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index,
			     __be16 *pkey)
{
	if (port != 1 || index)
		return EINVAL;
	*pkey = 0xffff;
	return 0;
}

SE_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct verbs_context *vctx = calloc(1, sizeof(*vctx));
	struct ibv_context *ctx;

	if (!vctx)
		return NULL;
	vctx->sz = sizeof(*vctx);
	vctx->query_port = se_query_port;
	vctx->create_cq_ex = se_cq_create_ex;
	vctx->create_qp_ex = se_qp_create_ex;
	vctx->query_device_ex = se_query_device_ex;
	ctx = &vctx->context;
	ctx->device = device;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->cmd_fd = -1;
	ctx->async_fd = -1;
	ctx->num_comp_vectors = SE_COMP_VECTORS;
	ctx->ops.post_send = se_post_send;
	ctx->ops.post_recv = se_post_recv;
	ctx->ops.poll_cq = se_cq_poll;
	ctx->ops.req_notify_cq = se_notify_arm;
	pthread_mutex_init(&ctx->mutex, NULL);
	return ctx;
}

SE_EXPORT int ibv_close_device(struct ibv_context *ctx)
{
	pthread_mutex_destroy(&ctx->mutex);
	free((char *)ctx - offsetof(struct verbs_context, context));
	return 0;
}

SE_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct se_dev *dev = se_dev_of(ctx);
	struct se_pd *pd = calloc(1, sizeof(*pd));
	bool space;

	if (!pd)
		return NULL;
	pthread_mutex_lock(&dev->lock);
	space = dev->pd_count < se_cfg.max_pd;
	if (space)
		dev->pd_count++;
	pthread_mutex_unlock(&dev->lock);
	if (!space) {
		free(pd);
		errno = ENOMEM;
		return NULL;
	}
	pd->ibv.context = ctx;
	return &pd->ibv;
}

SE_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct se_dev *dev = se_dev_of(pd->context);

	pthread_mutex_lock(&dev->lock);
	dev->pd_count--;
	pthread_mutex_unlock(&dev->lock);
	free(pd);
	return 0;
}

SE_EXPORT int ibv_fork_init(void)
{
	return 0;
}

SE_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
