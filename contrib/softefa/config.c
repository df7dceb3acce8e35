/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Environment variables; softefa(1) describes each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softefa.h"

#define SE_REORDER 0.05 /* EFA reorders, too: no program may rely on an order */

struct se_config se_cfg;

static const char *se_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static void se_env_bad(const char *name, const char *value, const char *want)
{
	fprintf(stderr, "softefa: %s=%s is not %s; ignored\n", name, value,
		want);
}

static uint32_t se_env_num(const char *name, uint32_t value, uint32_t min,
			   uint32_t max)
{
	const char *text = se_env(name);
	unsigned long long number;
	char want[64], *end;

	if (!text)
		return value;
	number = strtoull(text, &end, 0);
	if (*end || number < min || number > max) {
		snprintf(want, sizeof(want), "a number from %u to %u", min,
			 max);
		se_env_bad(name, text, want);
		return value;
	}
	return (uint32_t)number;
}

/* Reads a probability, "0.05" or "5%". Returns "value" if unset or invalid. */
static double se_env_prob(const char *name, double value)
{
	const char *text = se_env(name);
	double prob;
	char *end;

	if (!text)
		return value;
	prob = strtod(text, &end);
	if (*end == '%' && !end[1])
		prob /= 100;
	else if (*end)
		prob = -1;
	if (!(prob >= 0 && prob <= 1)) {
		se_env_bad(name, text, "a probability from 0 to 1");
		return value;
	}
	return prob;
}

static void se_env_str(const char *name, char *value, size_t size)
{
	const char *text = se_env(name);
	char want[64];

	if (!text)
		return;
	if (strlen(text) >= size) {
		snprintf(want, sizeof(want), "of %zu characters at most",
			 size - 1);
		se_env_bad(name, text, want);
		return;
	}
	strcpy(value, text);
}

/*
 * Stores the path in SOFTEFA_DIR, or the default. Returns 0; or an errno if the
 * path is too long or relative, and then the process gets no device. If the
 * path were truncated, it would name another directory. So would a relative
 * path in a process that has another working directory.
 */
static int se_env_dir(char *value, size_t size)
{
	const char *text = se_env("SOFTEFA_DIR");

	if (!text) {
		snprintf(value, size, "/dev/shm/softefa-%u",
			 (unsigned int)getuid());
		return 0;
	}
	if (*text == '/' && strlen(text) < size) {
		strcpy(value, text);
		return 0;
	}
	fprintf(stderr, "softefa: SOFTEFA_DIR=%s: %s; set it to an absolute path of %zu characters at most\n",
		text, *text == '/' ? "too long" : "not absolute", size - 1);
	return *text == '/' ? ENAMETOOLONG : EINVAL;
}

/* Returns the FNV-1a hash of SOFTEFA_SECRET, 0 if it is unset. */
static uint64_t se_env_secret(void)
{
	const char *text = se_env("SOFTEFA_SECRET");
	uint64_t hash = 0xcbf29ce484222325ull;

	if (!text)
		return 0;
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

static uint32_t se_env_caps(void)
{
	uint32_t caps = SE_CAP_RNR_RETRY | SE_CAP_CQ_WITH_SGID;
	const char *text = se_env("SOFTEFA_RDMA");

	if (!text || !strcmp(text, "unsolicited"))
		return caps | SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE |
		       SE_CAP_UNSOLICITED;
	if (!strcmp(text, "write"))
		return caps | SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE;
	if (!strcmp(text, "read"))
		return caps | SE_CAP_RDMA_READ;
	if (strcmp(text, "0"))
		se_env_bad("SOFTEFA_RDMA", text,
			   "0, read, write or unsolicited");
	return caps;
}

static void se_config_limits(struct se_config *cfg)
{
	cfg->mtu = se_env_num("SOFTEFA_MTU", 8928, 1024, 65000);
	cfg->slots = se_env_num("SOFTEFA_SLOTS", 512, 64, 65536);
	cfg->max_qp = se_env_num("SOFTEFA_MAX_QP", 256, 1, 16384);
	cfg->max_cq = se_env_num("SOFTEFA_MAX_CQ", 512, 1, 65536);
	cfg->max_pd = se_env_num("SOFTEFA_MAX_PD", 256, 1, 65536);
	cfg->max_mr = se_env_num("SOFTEFA_MAX_MR", 65535, 1, 65535);
	cfg->max_ah = se_env_num("SOFTEFA_MAX_AH", 4096, 1, 65534);
	cfg->max_flows = se_env_num("SOFTEFA_MAX_FLOWS", 4096, 1, 65536);
	cfg->max_sq_wr = se_env_num("SOFTEFA_MAX_SQ_WR", 1024, 1, 16384);
	cfg->max_rq_wr = se_env_num("SOFTEFA_MAX_RQ_WR", 8192, 1, 32768);
}

static void se_config_faults(struct se_config *cfg)
{
	cfg->fault[SE_FAULT_LOSS] = se_env_prob("SOFTEFA_LOSS", 0);
	cfg->fault[SE_FAULT_ACK_LOSS] = cfg->fault[SE_FAULT_LOSS];
	cfg->fault[SE_FAULT_REORDER] =
		se_env_prob("SOFTEFA_REORDER", SE_REORDER);
	cfg->fault[SE_FAULT_DUP] = se_env_prob("SOFTEFA_DUP", 0);
	cfg->fault[SE_FAULT_RNR] = se_env_prob("SOFTEFA_RNR", 0);
	cfg->fault[SE_FAULT_ERROR] = se_env_prob("SOFTEFA_ERROR", 0);
	cfg->error_status = se_env_num("SOFTEFA_ERROR_STATUS",
				       SE_REMOTE_ABORT, 1, SE_UNREACH_REMOTE);
	cfg->delay_us = se_env_num("SOFTEFA_DELAY_US", 0, 0, 10000000);
	cfg->seed = se_env_num("SOFTEFA_SEED", 1, 0, UINT32_MAX);
}

int se_config_read(void)
{
	struct se_config *cfg = &se_cfg;
	const char *wire = se_env("SOFTEFA_WIRE");

	if (wire && strcmp(wire, "shm") && strcmp(wire, "udp"))
		se_env_bad("SOFTEFA_WIRE", wire, "shm or udp");
	cfg->udp = wire && !strcmp(wire, "udp");
	cfg->ndev = se_env_num("SOFTEFA_NDEV", 1, 1, SE_MAX_DEV);
	cfg->stats = se_env_num("SOFTEFA_STATS", 0, 0, 1);
	cfg->timeout_ms = se_env_num("SOFTEFA_TIMEOUT_MS", 600000, 10, 3600000);
	cfg->caps = se_env_caps();
	se_config_limits(cfg);
	se_config_faults(cfg);
	cfg->secret = se_env_secret();
	se_env_str("SOFTEFA_GID", cfg->gid, sizeof(cfg->gid));
	se_env_str("SOFTEFA_ADDR", cfg->addr, sizeof(cfg->addr));
	se_env_str("SOFTEFA_PCI", cfg->pci, sizeof(cfg->pci));
	return se_env_dir(cfg->dir, sizeof(cfg->dir));
}
