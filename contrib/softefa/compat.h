/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Structures of efadv.h with the fields of newer rdma-core headers: a
 * libsoftefa built with old headers (Debian 12 has 44) works with newer
 * callers. The layouts are ABI: new versions add fields at the end, and the
 * caller passes the size in inlen.
 */
#ifndef SOFTEFA_COMPAT_H
#define SOFTEFA_COMPAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/efadv.h>

#define SE_CAP_RDMA_READ (1u << 0)
#define SE_CAP_RNR_RETRY (1u << 1)
#define SE_CAP_CQ_WITH_SGID (1u << 2)
#define SE_CAP_RDMA_WRITE (1u << 3)
#define SE_CAP_UNSOLICITED (1u << 4)

#define SE_QP_UNSOLICITED (1u << 0)

/* struct efadv_cq; wc_is_unsolicited since rdma-core 54 */
struct se_dv_cq {
	uint64_t comp_mask;
	int (*wc_read_sgid)(struct efadv_cq *dv, union ibv_gid *sgid);
	bool (*wc_is_unsolicited)(struct efadv_cq *dv);
};

/* struct efadv_qp_init_attr; flags, sl since rdma-core 54, wr_flags since 64 */
struct se_dv_qp_attr {
	uint64_t comp_mask;
	uint32_t driver_qp_type;
	uint16_t flags;
	uint8_t sl;
	uint8_t reserved[1];
	uint64_t wr_flags;
};
#define SE_WR_PROCESSING_HINTS (1u << 0)

/* struct efadv_cq_init_attr; flags, ext_mem since rdma-core 58 */
struct se_dv_cq_attr {
	uint64_t comp_mask;
	uint64_t wc_flags;
	uint64_t flags;
	uint8_t ext_mem[32];
};
#define SE_WC_WITH_SGID (1u << 0)
#define SE_WC_WITH_UNSOLICITED (1u << 1)

/* struct efadv_sq_depth_attr, efadv_rq_depth_attr, since rdma-core 64 */
struct se_dv_sq_depth {
	uint64_t comp_mask;
	uint32_t flags;
	uint32_t max_send_sge;
	uint32_t max_rdma_sge;
	uint32_t max_inline_data;
};
#define SE_SQ_DEPTH_INLINE_WRITE (1u << 0)

struct se_dv_rq_depth {
	uint64_t comp_mask;
	uint32_t max_recv_sge;
};

/* struct efadv_qp, since rdma-core 64 */
struct se_dv_qp {
	uint64_t comp_mask;
	void (*wr_set_processing_hints)(void *dv, uint32_t hints);
};

/*
 * Copies a structure to another version of it, which has `size` bytes. Fields
 * that are missing in "from" become 0.
 */
static inline void se_copy_out(void *to, size_t size, const void *from,
			       size_t from_size)
{
	memset(to, 0, size);
	memcpy(to, from, size < from_size ? size : from_size);
}

/*
 * True if the structure has only zeros from byte "known" on. Other values
 * request features that libsoftefa lacks.
 */
static inline bool se_rest_is_zero(const void *from, size_t size, size_t known)
{
	const uint8_t *byte = from;

	for (; known < size; known++) {
		if (byte[known])
			return false;
	}
	return true;
}

#endif
