/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Entry points of newer rdma-core that a newer libfabric calls.  They answer
 * that the device does not have the feature, which makes the provider take the
 * path this device has.  The structures they fill are not in older headers;
 * nothing of them is touched but what the caller says is there.
 */
#include <errno.h>
#include <string.h>

#include "softefa.h"

/* Prototypes here: the headers of Debian 12 and 13 lack some. */
int se_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen)
	__asm__("efadv_query_mr");
int se_query_cq(struct ibv_cq *cq, void *attr, uint32_t inlen)
	__asm__("efadv_query_cq");
int se_query_qp_wqs(struct ibv_qp *qp, void *sq, void *rq, uint32_t inlen)
	__asm__("efadv_query_qp_wqs");
void *se_create_comp_cntr(struct ibv_context *ctx, void *attr)
	__asm__("ibv_create_comp_cntr");
void *se_efadv_create_comp_cntr(struct ibv_context *ctx, void *attr,
				void *efa_attr, uint32_t inlen)
	__asm__("efadv_create_comp_cntr");

SE_EXPORT int se_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen)
{
	memset(attr, 0, inlen); /* no interconnect ids are valid */
	return 0;
}

/* EOPNOTSUPP keeps the provider's data-path-direct off: it polls through us. */
SE_EXPORT int se_query_cq(struct ibv_cq *cq, void *attr, uint32_t inlen)
{
	return EOPNOTSUPP;
}

SE_EXPORT int se_query_qp_wqs(struct ibv_qp *qp, void *sq, void *rq,
			      uint32_t inlen)
{
	return EOPNOTSUPP;
}

SE_EXPORT void *se_create_comp_cntr(struct ibv_context *ctx, void *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

SE_EXPORT void *se_efadv_create_comp_cntr(struct ibv_context *ctx, void *attr,
					  void *efa_attr, uint32_t inlen)
{
	errno = EOPNOTSUPP;
	return NULL;
}
