/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Opens and closes the endpoint, and checks the path of all messages. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* empty registry directory, so that ofi_duo finds no local peers; "": none */
static char bn_dir[64];

static void bn_hide(void)
{
	const char *shm = "/dev/shm";

	snprintf(bn_dir, sizeof(bn_dir), "%s/duobench.%d", shm, getpid());
	if (mkdir(bn_dir, 0700))
		BN_DIE("mkdir %s: %s", bn_dir, strerror(errno));
	setenv("FI_OFI_DUO_REGISTRY_DIR", bn_dir, 1);
}

/* Returns the source address, if the provider needs one, or NULL. */
static const char *bn_source(void)
{
	static const char *const names[] = { "tcp", "sockets", "udp", "net" };
	const char *prov = bn.opts.prov;
	size_t i;

	if (bn.opts.src)
		return bn.opts.src;
	for (i = 0; i < BN_COUNT(names); i++)
		if (!strncmp(prov, names[i], strlen(names[i])))
			return "127.0.0.1";
	return NULL;
}

/*
 * Returns hints like those of Open MPI's MTL, with the capabilities that the
 * tests need.
 */
static struct fi_info *bn_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		BN_DIE("fi_allocinfo");
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV | bn.opts.caps;
	if (!bn.opts.tagged_only)
		hints->caps |= FI_MSG;
	if (bn.opts.both_comm)
		hints->caps |= FI_LOCAL_COMM | FI_REMOTE_COMM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading =
		bn.opts.thread_safe ? FI_THREAD_SAFE :
		bn.opts.processes ? FI_THREAD_COMPLETION : FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED |
				      FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
				      FI_MR_ENDPOINT;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(bn.opts.prov);
	return hints;
}

static void bn_getinfo(void)
{
	const char *src = bn_source();
	struct fi_info *hints = bn_hints();
	int ret = fi_getinfo(FI_VERSION(2, 0), src, NULL, src ? FI_SOURCE : 0,
			     hints, &bn.info);

	fi_freeinfo(hints);
	if (ret)
		bn_fail(BN_SKIP, "fi_getinfo for %s: %s", bn.opts.prov,
			fi_strerror(-ret));
}

/* Opens and enables an endpoint of bn.domain, with its own CQ and AV. */
int bn_open_ep(struct fid_ep **ep, struct fid_cq **cq, struct fid_av **av)
{
	struct fi_cq_attr cq_attr = {
		.size = BN_CQ_SIZE,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = bn.opts.sleeps ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = { .type = bn.info->domain_attr->av_type };
	int ret;

	ret = fi_cq_open(bn.domain, &cq_attr, cq, NULL);
	if (!ret)
		ret = fi_av_open(bn.domain, &av_attr, av, NULL);
	if (!ret)
		ret = fi_endpoint(bn.domain, bn.info, ep, NULL);
	if (!ret)
		ret = fi_ep_bind(*ep, &(*av)->fid, 0);
	if (!ret)
		ret = fi_ep_bind(*ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(*ep);
	return ret;
}

static struct fid_mr *bn_region(void *buf, size_t len)
{
	struct fid_mr *mr;

	BN_OK(fi_mr_reg(bn.domain, buf, len, FI_REMOTE_READ | FI_REMOTE_WRITE,
			0, 3, 0, &mr, NULL));
	if (bn.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		BN_OK(fi_mr_bind(mr, &bn.ep->fid, 0));
		BN_OK(fi_mr_enable(mr));
	}
	return mr;
}

static void bn_alloc(void)
{
	size_t len = bn.opts.max_size;
	bool local = bn.info->domain_attr->mr_mode & FI_MR_LOCAL;
	void *buf[2];
	int i;

	for (i = 0; i < 2; i++) {
		if (posix_memalign(&buf[i], 4096, len))
			BN_DIE("no memory for %zu bytes", len);
		memset(buf[i], i, len);
	}
	bn.sbuf = buf[0];
	bn.rbuf = buf[1];
	if (bn.opts.caps & FI_RMA)
		bn.region = bn_region(buf[1], len);
	if (!local)
		return;
	BN_OK(fi_mr_reg(bn.domain, buf[0], len, FI_SEND | FI_READ | FI_WRITE,
			0, 1, 0, &bn.smr, NULL));
	BN_OK(fi_mr_reg(bn.domain, buf[1], len, FI_RECV, 0, 2, 0, &bn.rmr,
			NULL));
	bn.sdesc = fi_mr_desc(bn.smr);
	bn.rdesc = fi_mr_desc(bn.rmr);
}

static void bn_exchange(void)
{
	struct bn_shared *sh = bn.sh;
	size_t len = BN_NAME_MAX;
	int i;

	BN_OK(fi_getname(&bn.ep->fid, sh->peer[bn.rank].name, &len));
	sh->peer[bn.rank].len = len;
	bn_sync_still();
	for (i = 0; i < bn.opts.nranks; i++)
		if (fi_av_insert(bn.av, sh->peer[i].name, 1, &bn.peer[i], 0,
				 NULL) != 1)
			BN_DIE("fi_av_insert of rank %d", i);
}

void bn_open_domain(void)
{
	if (bn.opts.remote)
		bn_hide();
	bn_getinfo();
	BN_OK(fi_fabric(bn.info->fabric_attr, &bn.fabric, NULL));
	BN_OK(fi_domain(bn.fabric, bn.info, &bn.domain, NULL));
}

void bn_open(void)
{
	uint64_t start;

	bn_sync_still();
	start = bn_now();
	if (!bn.domain)
		bn_open_domain();
	BN_OK(bn_open_ep(&bn.ep, &bn.cq, &bn.av));
	bn_exchange();
	bn.start_ns = bn_now() - start;
	bn_sync();
	bn_alloc();
	if (fi_open_ops(&bn.ep->fid, FI_DUO_OPS, 0, (void **) &bn.ops, NULL))
		bn.ops = NULL;
}

/* True if this process has a TCP connection, and so has used the network. */
static bool bn_has_connection(void)
{
	struct sockaddr_storage peer;
	long fd, count = sysconf(_SC_OPEN_MAX);

	for (fd = 0; fd < count && fd < BN_MAX_FDS; fd++) {
		socklen_t len = sizeof(peer);

		if (!getpeername((int) fd, (struct sockaddr *) &peer, &len) &&
		    peer.ss_family != AF_UNIX)
			return true;
	}
	return false;
}

/*
 * Checks by ofi_duo's statistics that all messages used the path of -P. lnx has
 * no statistics: if this process has no TCP connection, lnx has sent all
 * messages through shm.
 */
void bn_check_path(void)
{
	struct fi_duo_stats stats = { 0 };
	enum fi_duo_path right;

	if (!bn.opts.path)
		return;
	if (!strcmp(bn.opts.prov, "lnx") && !strcmp(bn.opts.path, "shm")) {
		if (bn_has_connection())
			BN_DIE("wrong path: lnx has connected");
		return;
	}
	if (!bn.ops)
		BN_DIE("%s is not ofi_duo, it cannot tell its paths",
		       bn.opts.prov);
	right = strcmp(bn.opts.path, "shm") ? FI_DUO_CORE : FI_DUO_LOCAL;
	BN_OK(bn.ops->stats(bn.ep, &stats, sizeof(stats)));
	if (stats.rma_ops[!right] || stats.atomic_ops[!right])
		BN_DIE("wrong path: %lu one-sided operations were not on %s",
		       (unsigned long) (stats.rma_ops[!right] +
					stats.atomic_ops[!right]),
		       bn.opts.path);
	if (stats.path[!right].tx_msgs || stats.path[!right].rx_msgs)
		BN_DIE("wrong path: %lu of %lu sends were not on %s",
		       (unsigned long) stats.path[!right].tx_msgs,
		       (unsigned long) (stats.path[!right].tx_msgs +
					stats.path[right].tx_msgs),
		       bn.opts.path);
}

void bn_close(void)
{
	if (bn.region)
		fi_close(&bn.region->fid);
	if (bn.smr) {
		fi_close(&bn.smr->fid);
		fi_close(&bn.rmr->fid);
	}
	fi_close(&bn.ep->fid);
	fi_close(&bn.av->fid);
	fi_close(&bn.cq->fid);
	bn.cq = NULL;
}

void bn_close_domain(void)
{
	fi_close(&bn.domain->fid);
	fi_close(&bn.fabric->fid);
	fi_freeinfo(bn.info);
	if (bn.opts.remote)
		rmdir(bn_dir);
}
