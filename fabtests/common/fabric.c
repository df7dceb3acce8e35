/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Opens and closes the objects of a test. */

#include "ft.h"

#define FT_CQ_SIZE 4096
#define FT_DUO ";ofi_duo"

bool ft_has_prefix(const char *prov, const char *core)
{
	size_t n = strlen(core);

	return !strncmp(prov, core, n) && (!prov[n] || prov[n] == ';');
}

/* True for sockets: its unexpected messages lack FI_REMOTE_CQ_DATA. */
bool ft_no_data_flag(void)
{
	return ft_has_prefix(ft.opts.prov, "sockets");
}

static bool ft_is_duo(const char *prov)
{
	return strstr(prov, FT_DUO) != NULL;
}

/*
 * True if ofi_duo is loaded as a hook and shared memory is not disabled. If it
 * is disabled, the hook must return the core's own objects.
 */
static bool ft_is_hooked(void)
{
	const char *hook = getenv("FI_HOOK");
	const char *local = getenv("FI_OFI_DUO_LOCAL");

	return hook && !strcmp(hook, "duo") &&
	       !(local && !strcmp(local, "off"));
}

bool ft_wraps(void)
{
	return ft_is_duo(ft.opts.prov) || ft_is_hooked();
}

/* True if this provider needs a source address in the hints. */
static bool ft_wants_src(const char *prov)
{
	return ft_has_prefix(prov, "tcp") || ft_has_prefix(prov, "sockets") ||
	       ft_has_prefix(prov, "udp") || ft_has_prefix(prov, "net");
}

/*
 * Sets the provider's name. With by_fids, also sets the open fabric and domain
 * of cfg->share.
 */
static void ft_hints_who(struct fi_info *hints, const struct ft_cfg *cfg,
			 const char *prov)
{
	if (!cfg->unnamed)
		hints->fabric_attr->prov_name = strdup(prov);
	if (!cfg->by_fids)
		return;
	hints->fabric_attr->fabric = cfg->share->fabric;
	hints->domain_attr->domain = cfg->share->domain;
}

static struct fi_info *ft_hints(const struct ft_cfg *cfg, const char *prov)
{
	struct fi_info *hints = fi_allocinfo();

	FT_CHECK(hints, "fi_allocinfo");
	hints->caps = FI_MSG | FI_TAGGED | cfg->caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR |
				      FI_MR_PROV_KEY;
	if (!cfg->any_buffer)
		hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	hints->domain_attr->threading = cfg->threading;
	hints->domain_attr->control_progress = cfg->control_progress;
	hints->domain_attr->data_progress = cfg->data_progress;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = cfg->av_type;
	hints->tx_attr->msg_order = FI_ORDER_SAS | cfg->order;
	hints->rx_attr->msg_order = FI_ORDER_SAS | cfg->order;
	ft_hints_who(hints, cfg, prov);
	if (cfg->hints)
		cfg->hints(hints);
	if (!cfg->src)
		return hints;
	hints->addr_format = cfg->addr_format;
	hints->src_addrlen = cfg->src_len;
	hints->src_addr = malloc(cfg->src_len);
	FT_CHECK(hints->src_addr, "malloc");
	memcpy(hints->src_addr, cfg->src, cfg->src_len);
	return hints;
}

/*
 * Frees all infos of the list but the first one of this provider. Returns
 * -FI_ENODATA if the list has none of this provider.
 */
static int ft_pick(const char *prov, struct fi_info **info)
{
	struct fi_info *at, **link = info;

	while ((at = *link)) {
		if (link == info && !strcmp(at->fabric_attr->prov_name, prov)) {
			link = &at->next;
			continue;
		}
		*link = at->next;
		at->next = NULL;
		fi_freeinfo(at);
	}
	return *info ? 0 : -FI_ENODATA;
}

int ft_getinfo_as(const struct ft_cfg *cfg, const char *prov,
		  struct fi_info **info)
{
	struct fi_info *hints = ft_hints(cfg, prov);
	const char *src = cfg->src ? NULL : ft.opts.src;
	uint32_t version = FT_API_VERSION;
	int ret;

	if (cfg->api && FI_VERSION_LT(cfg->api, version))
		version = cfg->api;
	if (!src && !cfg->src && ft_wants_src(prov))
		src = "127.0.0.1";
	ret = fi_getinfo(version, src, NULL, src ? FI_SOURCE : 0, hints, info);
	fi_freeinfo(hints);
	return ret || !cfg->unnamed ? ret : ft_pick(prov, info);
}

bool ft_offers(const struct ft_cfg *cfg, uint64_t caps, uint64_t order)
{
	struct fi_info *info = NULL;
	struct ft_cfg with = *cfg;
	char prov[128], *end;

	with.caps |= caps;
	with.order |= order;
	snprintf(prov, sizeof(prov), "%s", ft.opts.prov);
	end = strstr(prov, FT_DUO);
	if (end)
		*end = 0;
	if (ft_getinfo_as(&with, prov, &info))
		return false;
	fi_freeinfo(info);
	return true;
}

/* True if libfabric has this provider and a device for it. */
static bool ft_has_provider(const char *prov)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	FT_CHECK(hints, "fi_allocinfo");
	hints->mode = ~0ull;
	hints->domain_attr->mode = ~0ull;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED |
				      FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
				      FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(prov);
	ret = fi_getinfo(FT_API_VERSION, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (!ret)
		fi_freeinfo(info);
	return !ret;
}

/*
 * Returns an info for the configuration. If there is none, the test fails.
 * Exception: the test is skipped if the core is present, but does not support
 * the configuration.
 */
static struct fi_info *ft_getinfo(const struct ft_cfg *cfg)
{
	struct fi_info *info = NULL;
	char prov[128], *end;
	int ret;

	snprintf(prov, sizeof(prov), "%s", ft.opts.prov);
	end = strstr(prov, FT_DUO);
	if (end && cfg->plain)
		*end = 0;
	ret = ft_getinfo_as(cfg, prov, &info);
	if (!ret)
		return info;
	if (cfg->by_fids)
		FT_DIE("fi_getinfo for the open objects of %s: %s", prov,
		       fi_strerror(-ret));
	if (ft_is_duo(prov)) {
		*end = 0;
		if (!ft_getinfo_as(cfg, prov, &info))
			FT_DIE("fi_getinfo for %s: %s, but %s has it",
			       ft.opts.prov, fi_strerror(-ret), prov);
	}
	if (!ft_has_provider(prov))
		FT_DIE("%s: fi_getinfo: %s: no such provider or no device here; see FI_LOG_LEVEL=info",
		       prov, fi_strerror(-ret));
	ft_skip("%s: fi_getinfo: %s (caps 0x%lx, threading %d)", prov,
		fi_strerror(-ret), (unsigned long)cfg->caps, cfg->threading);
}

/* The context of a CQ or counter is the address of its field in e. */
static void ft_open_cqs(struct ft_ep *e)
{
	struct fi_cq_attr attr = {
		.size = e->cfg.cq_size ? e->cfg.cq_size : FT_CQ_SIZE,
		.format = e->cfg.format ? e->cfg.format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = e->cfg.wait_obj ? e->cfg.wait_obj : FI_WAIT_NONE,
	};

	if (e->cfg.no_cqs)
		return;
	if (e->cfg.share_cq) {
		e->txcq = e->cfg.share->txcq;
		e->rxcq = e->cfg.share->rxcq;
		return;
	}
	FT_OK(fi_cq_open(e->domain, &attr, &e->txcq, &e->txcq));
	e->rxcq = e->txcq;
	if (e->cfg.separate_cqs)
		FT_OK(fi_cq_open(e->domain, &attr, &e->rxcq, &e->rxcq));
}

static void ft_open_cntrs(struct ft_ep *e)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = e->cfg.no_cqs && e->cfg.wait_obj ?
			    e->cfg.wait_obj : FI_WAIT_UNSPEC,
	};

	if (!e->cfg.counters)
		return;
	FT_OK(fi_cntr_open(e->domain, &attr, &e->tx_cntr, &e->tx_cntr));
	FT_OK(fi_cntr_open(e->domain, &attr, &e->rx_cntr, &e->rx_cntr));
	FT_OK(fi_ep_bind(e->ep, &e->tx_cntr->fid, FI_SEND));
	FT_OK(fi_ep_bind(e->ep, &e->rx_cntr->fid, FI_RECV));
}

static void ft_open_domain(struct ft_ep *e)
{
	struct fi_av_attr attr = { .type = e->cfg.av_type };
	struct ft_ep *share = e->cfg.share;

	if (!attr.type)
		attr.type = e->info->domain_attr->av_type;
	if (e->cfg.by_fids)
		FT_CHECK(e->info->fabric_attr->fabric == share->fabric &&
			 e->info->domain_attr->domain == share->domain,
			 "fabric %p and domain %p, not %p and %p",
			 (void *)e->info->fabric_attr->fabric,
			 (void *)e->info->domain_attr->domain,
			 (void *)share->fabric, (void *)share->domain);
	if (share) {
		e->fabric = share->fabric;
		e->domain = share->domain;
	} else {
		FT_OK(fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
		FT_OK(fi_domain(e->fabric, e->info, &e->domain, NULL));
	}
	if (e->cfg.share_av)
		e->av = share->av;
	else
		FT_OK(fi_av_open(e->domain, &attr, &e->av, NULL));
}

static void ft_bind_cqs(struct ft_ep *e)
{
	if (e->cfg.no_cqs)
		return;
	if (e->txcq == e->rxcq && e->cfg.tx_bind == e->cfg.rx_bind) {
		FT_OK(fi_ep_bind(e->ep, &e->txcq->fid,
				 FI_TRANSMIT | FI_RECV | e->cfg.tx_bind));
		return;
	}
	FT_OK(fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | e->cfg.tx_bind));
	FT_OK(fi_ep_bind(e->ep, &e->rxcq->fid, FI_RECV | e->cfg.rx_bind));
}

static void ft_self(struct ft_ep *e)
{
	const char *local = getenv("FI_OFI_DUO_LOCAL");
	/* the test's layout excludes shared memory */
	bool no_shm = getenv("FT_NO_SHM");
	struct ft_peer *self = &e->self;

	self->namelen = sizeof(self->name);
	FT_OK(fi_getname(&e->ep->fid, self->name, &self->namelen));
	snprintf(self->host, sizeof(self->host), "%s", ft.opts.host);
	self->duo = e->ops != NULL;
	self->shm = e->ops && !no_shm && !(local && !strcmp(local, "off"));
	self->addr = FI_ADDR_NOTAVAIL;
}

static void ft_bind_eq(struct ft_ep *e)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	if (!e->cfg.eq)
		return;
	FT_OK(fi_eq_open(e->fabric, &attr, &e->eq, NULL));
	FT_OK(fi_ep_bind(e->ep, &e->eq->fid, 0));
}

void ft_open(struct ft_ep *e, const struct ft_cfg *cfg)
{
	static const struct ft_cfg common;
	int i;

	memset(e, 0, sizeof(*e));
	e->cfg = cfg ? *cfg : common;
	e->info = ft_getinfo(&e->cfg);
	ft_open_domain(e);
	ft_open_cqs(e);
	FT_OK(fi_endpoint(e->domain, e->info, &e->ep, NULL));
	FT_OK(fi_ep_bind(e->ep, &e->av->fid, 0));
	ft_bind_cqs(e);
	ft_bind_eq(e);
	if (!e->cfg.bind_late)
		ft_open_cntrs(e);
	FT_OK(fi_enable(e->ep));
	if (e->cfg.bind_late)
		ft_open_cntrs(e);
	if (fi_open_ops(&e->ep->fid, FI_DUO_OPS, 0, (void **)&e->ops, NULL))
		e->ops = NULL;
	FT_CHECK(e->ops || e->cfg.plain || !ft_wraps(),
		 "%s has no %s", e->info->fabric_attr->prov_name, FI_DUO_OPS);
	ft_self(e);
	for (i = 0; i < ft.opts.nranks; i++)
		e->peer[i].addr = FI_ADDR_NOTAVAIL;
	FT_CHECK(ft.neps < FT_MAX_EPS, "too many endpoints");
	ft.eps[ft.neps++] = e;
}

void ft_gather(struct ft_ep *e)
{
	ft_allgather(&e->self, sizeof(e->self), e->peer);
}

void ft_insert(struct ft_ep *e, int rank)
{
	int ret = fi_av_insert(e->av, e->peer[rank].name, 1,
			       &e->peer[rank].addr, 0, NULL);

	FT_CHECK(ret == 1, "fi_av_insert of rank %d: %d", rank, ret);
}

void ft_exchange(struct ft_ep *e)
{
	int r;

	ft_gather(e);
	for (r = 0; r < ft.opts.nranks; r++)
		ft_insert(e, r);
}

void ft_close_fids(struct ft_ep *e)
{
	int i;

	for (i = 0; ft.eps[i] != e; i++)
		;
	ft.eps[i] = ft.eps[--ft.neps];
	FT_OK(fi_close(&e->ep->fid));
	if (e->eq)
		FT_OK(fi_close(&e->eq->fid));
	if (e->cfg.counters) {
		FT_OK(fi_close(&e->tx_cntr->fid));
		FT_OK(fi_close(&e->rx_cntr->fid));
	}
	if (!e->cfg.share_cq && !e->cfg.no_cqs) {
		FT_OK(fi_close(&e->txcq->fid));
		if (e->rxcq != e->txcq)
			FT_OK(fi_close(&e->rxcq->fid));
	}
	if (!e->cfg.share_av)
		FT_OK(fi_close(&e->av->fid));
	if (!e->cfg.share) {
		FT_OK(fi_close(&e->domain->fid));
		FT_OK(fi_close(&e->fabric->fid));
	}
	fi_freeinfo(e->info);
}

void ft_close(struct ft_ep *e)
{
	ft_barrier();
	ft_check_tx(e);
	ft_check_rx(e);
	ft_barrier();
	ft_close_fids(e);
}

void ft_buf_alloc(struct ft_ep *e, struct ft_buf *buf, size_t len)
{
	static uint64_t key = 1000;
	size_t room = (len + 4095) & ~(size_t)4095;

	if (!room)
		room = 4096;
	memset(buf, 0, sizeof(*buf));
	buf->len = len;
	buf->ptr = aligned_alloc(4096, room);
	FT_CHECK(buf->ptr, "no memory for %zu bytes", room);
	memset(buf->ptr, 0, room);
	if (!(e->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	FT_OK(fi_mr_reg(e->domain, buf->ptr, room, FI_SEND | FI_RECV, 0,
			key++, 0, &buf->mr, NULL));
	buf->desc = fi_mr_desc(buf->mr);
}

void ft_buf_free(struct ft_buf *buf)
{
	if (buf->mr)
		FT_OK(fi_close(&buf->mr->fid));
	free(buf->ptr);
	memset(buf, 0, sizeof(*buf));
}
