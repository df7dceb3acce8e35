/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The configuration: read from the environment once, then unchanged. */
#ifndef SOFTEFA_CONFIG_H
#define SOFTEFA_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define SE_MAX_DEV 32

/* Kinds of fault; each has its own random sequence. */
enum se_fault {
	SE_FAULT_LOSS,
	SE_FAULT_ACK_LOSS,
	SE_FAULT_REORDER,
	SE_FAULT_DUP,
	SE_FAULT_RNR,
	SE_FAULT_ERROR,
	SE_FAULT_COUNT
};

struct se_config {
	bool udp, stats;
	uint32_t ndev, caps, mtu, slots, delay_us, timeout_ms;
	uint32_t max_qp, max_cq, max_pd, max_mr, max_ah, max_flows;
	uint32_t max_sq_wr, max_rq_wr, error_status;
	double fault[SE_FAULT_COUNT]; /* probabilities, 0 to 1 */
	uint64_t seed, secret;
	char dir[192];	/* directory of run-time files */
	char gid[64];	/* "": one GID per network namespace */
	char addr[64];	/* "": 127.0.0.1 */
	char pci[64];	/* "": the address of a device of this host */
};

extern struct se_config se_cfg;

/*
 * Reads the environment. Returns an errno if SOFTEFA_DIR is invalid, else 0.
 * Other invalid values are ignored.
 */
int se_config_read(void);

/*
 * True if this fault must be injected into event (kind, a, b, c). Depends only
 * on these arguments and the seed, not on timing.
 */
bool se_fault(enum se_fault kind, uint32_t a, uint32_t b, uint32_t c);
uint64_t se_fault_hash(enum se_fault kind, uint32_t a, uint32_t b, uint32_t c);

#endif
