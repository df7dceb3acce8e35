/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Implements fi_ops_duo of rdma/fi_duo.h. Prints statistics at fi_close(). */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "av/route.h"
#include "fi/api.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "transport/near/near_ep.h"

/*
 * Returns the number of operations with device memory that took this device
 * path, that is, method of copying. 0 if near executes neither RMA nor fetches
 * for ep.
 */
static uint64_t duo_stats_device(const struct duo_ep *ep,
				 enum near_device_path path)
{
	return ep->near && (ep->near->onesided || ep->near->fetches) ?
	       near_rma_device_ops(ep->near->port, path) : 0;
}

static struct fi_duo_stats duo_stats_of(const struct duo_ep *ep)
{
	struct fi_duo_stats stats = ep->stats;
	int path;

	stats.core_polls = ep->rx_cq ? ep->rx_cq->core_polls : 0;
	for (path = 0; path < NEAR_DEVICE_PEERS; path++)
		stats.device_rma_ops += duo_stats_device(ep, path);
	stats.device_rma_mapped = duo_stats_device(ep, NEAR_DEVICE_MAPPED) +
				  duo_stats_device(ep, NEAR_DEVICE_SHARED) +
				  duo_stats_device(ep, NEAR_DEVICE_LENT);
	return stats;
}

static int duo_ops_stats(struct fid_ep *ep_fid, struct fi_duo_stats *stats,
			 size_t len)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_duo_stats copy;

	if (!stats)
		return -FI_EINVAL;
	duo_group_lock(&ep->group);
	copy = duo_stats_of(ep);
	duo_unlock(&ep->group->lock);
	memcpy(stats, &copy, len < sizeof(copy) ? len : sizeof(copy));
	return 0;
}

/* Implements duo_ops_path() for an addr in the AV. */
static void duo_path_of(const struct duo_ep *ep, fi_addr_t addr,
			enum fi_duo_path *path, enum fi_duo_reason *reason)
{
	uint64_t word;

	*path = FI_DUO_CORE;
	*reason = FI_DUO_LOCAL_OFF;
	if (!ep->map)
		return;
	word = duo_route_load(ep->route, addr);
	*reason = ep->map->reason[addr];
	if (*reason == FI_DUO_OK &&
	    duo_route_state(word) == DUO_ROUTE_UNDECIDED)
		/* map->reason[] is 0 (FI_DUO_OK) until the path is decided */
		*reason = FI_DUO_UNDECIDED;
	if (duo_route_state(word) == DUO_ROUTE_LOCAL)
		*path = FI_DUO_LOCAL;
}

static int duo_ops_path(struct fid_ep *ep_fid, fi_addr_t addr,
			enum fi_duo_path *path, enum fi_duo_reason *reason)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	bool known;

	if (!path || !reason)
		return -FI_EINVAL;
	if (!ep->av)
		return -FI_ENOAV;
	duo_group_lock(&ep->group);
	known = duo_av_has(ep->av, addr);
	if (known)
		duo_path_of(ep, addr, path, reason);
	duo_unlock(&ep->group->lock);
	return known ? 0 : -FI_EINVAL;
}

static const char *duo_ops_reason_str(enum fi_duo_reason reason)
{
	static const char *const text[FI_DUO_REASON_COUNT] = {
		[FI_DUO_OK] = "local peer",
		[FI_DUO_UNDECIDED] = "path not decided yet",
		[FI_DUO_NOT_REGISTERED] = "no local endpoint has this address",
		[FI_DUO_EXITED] = "its process has exited",
		[FI_DUO_NAMESPACE] = "another namespace or libfabric version",
		[FI_DUO_NO_PEER_SLOT] = "peer limit of this endpoint reached",
		[FI_DUO_LOCAL_OFF] = "this endpoint has no shared memory",
		[FI_DUO_BAD_RECORD] = "invalid record, or one of another user",
		[FI_DUO_RECORD_UNREADABLE] = "its record cannot be opened",
		[FI_DUO_NOT_MAPPED] = "no connection over shared memory",
		[FI_DUO_TRANSPORT_MISMATCH] = "another local transport",
		[FI_DUO_ORDER_UNSUPPORTED] =
			"no RMA over shared memory, which an order requires",
	};

	return (unsigned) reason < FI_DUO_REASON_COUNT ? text[reason] :
							 "unknown";
}

static const char *duo_device_path_str(enum near_device_path path)
{
	static const char *const text[NEAR_DEVICE_PATHS] = {
		[NEAR_DEVICE_MAPPED] = "mapped by CUDA IPC",
		[NEAR_DEVICE_SHARED] = "mapped by a file descriptor",
		[NEAR_DEVICE_LENT] = "copied by the peer's GPU",
		[NEAR_DEVICE_HOST] =
			"host memory: one end is the peer's host memory, or "
			"host memory of this process that is not pinned",
		[NEAR_DEVICE_OFF] =
			"host memory: GPU_IPC is off, or the memory is not "
			"CUDA's",
		[NEAR_DEVICE_QUEUES] = "host memory: buffers of several GPUs",
		[NEAR_DEVICE_NO_EXPORT] =
			"host memory: CUDA cannot share the peer's memory, or "
			"GPU_IPC is off there",
		[NEAR_DEVICE_FAILED] =
			"host memory: CUDA cannot map the peer's memory",
		[NEAR_DEVICE_WAITS] =
			"host memory: the peer's file descriptor has not "
			"arrived yet",
		[NEAR_DEVICE_MEMORY] =
			"host memory: no memory to map the peer's memory",
		[NEAR_DEVICE_LIMIT] = "host memory: too many allocations",
		[NEAR_DEVICE_BEHIND] =
			"host memory: after a message that the peer has not "
			"read",
		[NEAR_DEVICE_PEERS] =
			"core: too many peers for copies through host memory",
	};

	return text[path];
}

static const char *duo_ops_device_path(struct fid_ep *ep_fid, fi_addr_t addr)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct near_peer *peer = NULL;
	const char *text = NULL;
	uint64_t word;

	duo_group_lock(&ep->group);
	if (ep->near && ep->near->onesided && ep->map &&
	    duo_av_has(ep->av, addr)) {
		word = duo_route_load(ep->route, addr);
		if (duo_route_state(word) == DUO_ROUTE_LOCAL)
			peer = ep->near->peer[duo_route_index(word)];
		if (peer)
			text = duo_device_path_str(near_rma_device_path(peer));
	}
	duo_unlock(&ep->group->lock);
	return text;
}

static const char *duo_ops_device_count(struct fid_ep *ep_fid,
					unsigned int number, uint64_t *count)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);

	if (number >= NEAR_DEVICE_PATHS - NEAR_DEVICE_MAPPED)
		return NULL;
	number += NEAR_DEVICE_MAPPED;
	duo_group_lock(&ep->group);
	*count = duo_stats_device(ep, number);
	duo_unlock(&ep->group->lock);
	return duo_device_path_str(number);
}

struct fi_ops_duo duo_ops = {
	.size = sizeof(struct fi_ops_duo),
	.stats = duo_ops_stats,
	.path = duo_ops_path,
	.reason_str = duo_ops_reason_str,
	.device_path = duo_ops_device_path,
	.device_count = duo_ops_device_count,
};

/*
 * Prints each line by one write(), so that the lines of several processes do
 * not mix.
 */
void duo_stats_print(const struct duo_ep *ep)
{
	const struct fi_duo_stats stats = duo_stats_of(ep);
	const struct fi_duo_path_stats *core = &stats.path[FI_DUO_CORE];
	const struct fi_duo_path_stats *local = &stats.path[FI_DUO_LOCAL];
	int path;

	dprintf(STDERR_FILENO, "ofi_duo stats: pid=%d core=%s "
		"local_tx_msgs=%" PRIu64 " local_tx_bytes=%" PRIu64 " "
		"local_rx_msgs=%" PRIu64 " local_rx_bytes=%" PRIu64 " "
		"core_tx_msgs=%" PRIu64 " core_tx_bytes=%" PRIu64 " "
		"core_rx_msgs=%" PRIu64 " core_rx_bytes=%" PRIu64 " "
		"recall_ok=%" PRIu64 " recall_lost=%" PRIu64 " "
		"unexpected=%" PRIu64 " core_posted=%" PRIu64 " "
		"deferred_posted=%" PRIu64 " core_polls=%" PRIu64 " "
		"core_rma_ops=%" PRIu64 " core_atomic_ops=%" PRIu64 " "
		"local_rma_ops=%" PRIu64 " local_atomic_ops=%" PRIu64 " "
		"device_tx_msgs=%" PRIu64 " device_rx_msgs=%" PRIu64 " "
		"device_rma_ops=%" PRIu64 " device_rma_mapped=%" PRIu64 "\n",
		getpid(), ep->domain->fabric->core_name,
		local->tx_msgs, local->tx_bytes, local->rx_msgs,
		local->rx_bytes,
		core->tx_msgs, core->tx_bytes, core->rx_msgs, core->rx_bytes,
		stats.recall_ok, stats.recall_lost, stats.unexpected,
		stats.core_posted, stats.deferred_posted, stats.core_polls,
		stats.rma_ops[FI_DUO_CORE], stats.atomic_ops[FI_DUO_CORE],
		stats.rma_ops[FI_DUO_LOCAL], stats.atomic_ops[FI_DUO_LOCAL],
		stats.device_tx_msgs, stats.device_rx_msgs,
		stats.device_rma_ops, stats.device_rma_mapped);
	for (path = NEAR_DEVICE_MAPPED; path < NEAR_DEVICE_PATHS; path++)
		if (duo_stats_device(ep, path))
			dprintf(STDERR_FILENO, "ofi_duo device stats: pid=%d "
				"ops=%" PRIu64 " %s\n", getpid(),
				duo_stats_device(ep, path),
				duo_device_path_str(path));
}
