/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of newer rdma-core versions, for a newer libfabric. Most of them
 * report that the device lacks the feature. Older headers lack the structures:
 * the functions take void pointers, and access only the bytes that the caller's
 * inlen covers.
 */
#include <errno.h>
#include <string.h>

#include "softefa.h"

/* Prototypes: the headers of Debian 12 and 13 lack some of them. */
int se_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen)
	__asm__("efadv_query_mr");
int se_query_cq(struct ibv_cq *cq, void *attr, uint32_t inlen)
	__asm__("efadv_query_cq");
int se_query_qp_wqs(struct ibv_qp *qp, void *sq, void *rq, uint32_t inlen)
	__asm__("efadv_query_qp_wqs");
int se_get_max_sq_depth(struct ibv_context *ctx, void *attr, uint32_t inlen)
	__asm__("efadv_get_max_sq_depth");
int se_get_max_rq_depth(struct ibv_context *ctx, void *attr, uint32_t inlen)
	__asm__("efadv_get_max_rq_depth");
struct se_dv_qp *se_dv_qp_of(struct ibv_qp_ex *qp)
	__asm__("efadv_qp_from_ibv_qp_ex");
void *se_create_comp_cntr(struct ibv_context *ctx, void *attr)
	__asm__("ibv_create_comp_cntr");
void *se_efadv_create_comp_cntr(struct ibv_context *ctx, void *attr,
				void *efa_attr, uint32_t inlen)
	__asm__("efadv_create_comp_cntr");
/* with an underscore: an inline function of verbs.h calls this name */
int se_query_comp_cntr_caps(struct ibv_context *ctx, void *caps, size_t size)
	__asm__("_ibv_query_comp_cntr_caps");

SE_EXPORT int se_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen)
{
	memset(attr, 0, inlen); /* no interconnect ids are valid */
	return 0;
}

/*
 * Returns EOPNOTSUPP, so that the provider does not access the queues directly
 * (its "data path direct"), but polls through libsoftefa.
 */
SE_EXPORT int se_query_cq(struct ibv_cq *cq, void *attr, uint32_t inlen)
{
	return EOPNOTSUPP;
}

SE_EXPORT int se_query_qp_wqs(struct ibv_qp *qp, void *sq, void *rq,
			      uint32_t inlen)
{
	return EOPNOTSUPP;
}

/* Returns the depth of the send queue, or a negative errno. */
SE_EXPORT int se_get_max_sq_depth(struct ibv_context *ctx, void *attr,
				  uint32_t inlen)
{
	struct se_dv_sq_depth ask;

	se_copy_out(&ask, sizeof(ask), attr, inlen);
	if (inlen < sizeof(ask) || ask.comp_mask ||
	    ask.max_send_sge > SE_MAX_SQ_SGE ||
	    ask.max_rdma_sge > SE_MAX_RDMA_SGE ||
	    ask.max_inline_data > SE_MAX_INLINE)
		return -EINVAL;
	/* inline data in writes doubles the size of each queue element */
	return (int)(ask.flags & SE_SQ_DEPTH_INLINE_WRITE ?
			     se_cfg.max_sq_wr / 2 : se_cfg.max_sq_wr);
}

SE_EXPORT int se_get_max_rq_depth(struct ibv_context *ctx, void *attr,
				  uint32_t inlen)
{
	struct se_dv_rq_depth ask;

	se_copy_out(&ask, sizeof(ask), attr, inlen);
	if (inlen < offsetof(struct se_dv_rq_depth, max_recv_sge) +
		    sizeof(ask.max_recv_sge) || ask.comp_mask ||
	    !ask.max_recv_sge || ask.max_recv_sge > SE_MAX_RQ_SGE)
		return -EINVAL;
	return (int)(se_cfg.max_rq_wr / ask.max_recv_sge);
}

SE_EXPORT struct se_dv_qp *se_dv_qp_of(struct ibv_qp_ex *qp)
{
	return &((struct se_qp *)qp)->dv;
}

SE_EXPORT int se_query_comp_cntr_caps(struct ibv_context *ctx, void *caps,
				      size_t size)
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

/* Functions of completion counters and SRQs, which cannot be created here. */
#define SE_NOT_HERE(name) \
	int se_no_##name(void *object) __asm__("ibv_" #name); \
	SE_EXPORT int se_no_##name(void *object) \
	{ \
		return EOPNOTSUPP; \
	}

SE_NOT_HERE(destroy_comp_cntr)
SE_NOT_HERE(inc_comp_cntr)
SE_NOT_HERE(inc_err_comp_cntr)
SE_NOT_HERE(set_comp_cntr)
SE_NOT_HERE(set_err_comp_cntr)
SE_NOT_HERE(read_comp_cntr)
SE_NOT_HERE(read_err_comp_cntr)
SE_NOT_HERE(qp_attach_comp_cntr)
SE_NOT_HERE(destroy_srq)

SE_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					 struct ibv_srq_init_attr *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}
