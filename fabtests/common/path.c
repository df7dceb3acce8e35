/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks that each message takes the expected path, if ofi_duo is used. */

#include <inttypes.h>

#include "ft.h"

static const char *const ft_path_name[FI_DUO_PATH_COUNT] = {
	[FI_DUO_CORE] = "core",
	[FI_DUO_LOCAL] = "shm",
};

/*
 * Returns the expected path to a rank: local if both ranks are on one host and
 * use a local transport. With libfabric's shm, an endpoint sends to itself over
 * the core.
 */
enum fi_duo_path ft_path(const struct ft_ep *e, int rank)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");
	const struct ft_peer *to = &e->peer[rank];

	if (rank == ft.opts.rank && peer && !strcmp(peer, "shm"))
		return FI_DUO_CORE;
	if (e->self.shm && to->shm && !strcmp(e->self.host, to->host))
		return FI_DUO_LOCAL;
	return FI_DUO_CORE;
}

/* True if all ranks reach each other over the local path. */
static bool ft_all_shm(const struct ft_ep *e)
{
	int r;

	for (r = 0; r < ft.opts.nranks; r++)
		if (!e->peer[r].shm || strcmp(e->peer[r].host, e->peer[0].host))
			return false;
	return true;
}

bool ft_over_tcp(void)
{
	return !strcmp(ft.opts.prov, "tcp") ||
	       !strcmp(ft.opts.prov, "tcp;ofi_duo");
}

/*
 * True if several endpoints may be bound to an AV, at the same time or one
 * after another. efa before libfabric 2.2 rejects a second endpoint on an AV.
 */
bool ft_shares_av(void)
{
	return !ft_has_prefix(ft.opts.prov, "efa") ||
	       fi_version() >= FI_VERSION(2, 2);
}

/*
 * True if untagged receives can name a source. tcp ignores the source
 * (xnet_srx_recv).
 */
bool ft_directs_untagged(const struct ft_ep *e)
{
	return ft_all_shm(e) || !ft_over_tcp();
}

/*
 * True if directed receives can be canceled. In shm, efa and ofi_rxm of
 * libfabric 2.x, util_cancel_src() damages the queues of untagged receives.
 */
bool ft_cancels_directed(const struct ft_ep *e)
{
	return !ft_has_prefix(ft.opts.prov, "shm") &&
	       (ft_all_shm(e) || (!ft_has_prefix(ft.opts.prov, "efa") &&
				  !strstr(ft.opts.prov, "ofi_rxm")));
}

void ft_stats(struct ft_ep *e, struct fi_duo_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (e->ops)
		FT_OK(e->ops->stats(e->ep, stats, sizeof(*stats)));
}

void ft_check_tx(struct ft_ep *e)
{
	struct fi_duo_stats stats;
	enum fi_duo_reason reason;
	enum fi_duo_path path;
	int p, r;

	if (!e->ops)
		return;
	ft_stats(e, &stats);
	for (p = 0; p < FI_DUO_PATH_COUNT; p++)
		FT_CHECK(stats.path[p].tx_msgs == e->tx[p],
			 "%" PRIu64 " sends used the %s path, not %" PRIuFAST64,
			 stats.path[p].tx_msgs, ft_path_name[p], e->tx[p]);
	for (r = 0; r < ft.opts.nranks; r++) {
		if (!e->tx_to[r])
			continue;
		FT_OK(e->ops->path(e->ep, e->peer[r].addr, &path, &reason));
		FT_CHECK(path == ft_path(e, r),
			 "sends to rank %d take the %s path (%s)", r,
			 ft_path_name[path], e->ops->reason_str(reason));
	}
}

/* Checks that all messages arrived over the path on which they were sent. */
void ft_check_rx(struct ft_ep *e)
{
	uint64_t to[FT_MAX_RANKS], all[FT_MAX_RANKS][FT_MAX_RANKS];
	uint64_t sent[FI_DUO_PATH_COUNT] = { 0 };
	uint64_t rx[FI_DUO_PATH_COUNT];
	struct fi_duo_stats stats;
	int p, r, n = ft.opts.nranks;

	for (r = 0; r < n; r++)
		to[r] = e->tx_to[r];
	ft_allgather(to, n * sizeof(to[0]), all);
	if (!e->ops || e->cfg.share_cq || e->cfg.share_av || e->cfg.raw)
		return;
	for (r = 0; r < n; r++)
		sent[ft_path(e, r)] += ((uint64_t *)all)[r * n + ft.opts.rank];
	ft_stats(e, &stats);
	for (p = 0; p < FI_DUO_PATH_COUNT; p++) {
		rx[p] = stats.path[p].rx_msgs;
		FT_CHECK(rx[p] <= sent[p], "%" PRIu64 " messages arrived over "
			 "the %s path, where %" PRIu64 " were sent", rx[p],
			 ft_path_name[p], sent[p]);
	}
	FT_CHECK(rx[0] + rx[1] == e->rx_ok, "%" PRIu64 " receives counted, "
		 "%" PRIuFAST64 " were completed", rx[0] + rx[1], e->rx_ok);
}
