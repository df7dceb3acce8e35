/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <sys/mman.h>

#include "fixture.h"

#define PUBLICATIONS 300

struct fixture fx;
static struct duo_publication publication[PUBLICATIONS];
static int published;

struct fi_info *fixture_info(const struct fixture_attr *attr)
{
	struct fi_info *info = fi_allocinfo();

	ck_assert_ptr_nonnull(info);
	info->caps = (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE |
		      FI_DIRECTED_RECV | FI_MULTI_RECV | FI_LOCAL_COMM |
		      FI_REMOTE_COMM) & ~attr->no_caps;
	info->addr_format = attr->addr_format ? attr->addr_format :
						FI_ADDR_EFA;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = 1 << 20;
	info->domain_attr->threading = attr->threading ? attr->threading :
							 FI_THREAD_SAFE;
	info->tx_attr->inject_size = 16;
	info->tx_attr->iov_limit = DUO_IOV_LIMIT;
	info->rx_attr->iov_limit = DUO_IOV_LIMIT;
	info->rx_attr->op_flags = attr->rx_op_flags;
	info->tx_attr->msg_order = attr->order;
	info->mode = attr->prefix ? FI_MSG_PREFIX : 0;
	info->ep_attr->msg_prefix_size = attr->prefix;
	if (attr->onesided)
		info->caps |= FI_RMA | FI_ATOMIC;
	if (attr->device) {
		info->caps |= FI_HMEM;
		info->domain_attr->mr_mode |= FI_MR_HMEM;
	}
	return info;
}

/* Initializes the fabric as duo_fabric_open() does, with the fakes. */
static void fixture_fabric(const struct fixture_attr *attr)
{
	fake_init();
	fake.core.util_srx = attr->core && !strcmp(attr->core, "efa");
	fx.fabric = (struct duo_fabric) {
		.fabric_fid.api_version = DUO_FI_VERSION,
		.core_name = strdup(attr->core ? attr->core : "tcp"),
		.traits = duo_traits_find(attr->core ? attr->core : "tcp"),
		.path_fabric = { fake_fabric_open(FI_DUO_CORE) },
	};
	if (attr->near)
		fx.fabric.peer = &duo_transport_near;
	if (attr->no_shm || attr->near)
		return;
	fx.fabric.path_fabric[FI_DUO_LOCAL] = fake_fabric_open(FI_DUO_LOCAL);
	fx.fabric.peer = &duo_transport_shm;
	fx.fabric.shm_info = fi_allocinfo();
	ck_assert_ptr_nonnull(fx.fabric.shm_info);
}

static int fixture_endpoint(const struct fixture_attr *attr,
			    struct fi_info *info)
{
	struct fid_cq *tx_cq = fx.tx_cq ? fx.tx_cq : fx.cq;
	int ret = fi_endpoint(fx.domain, info, &fx.ep, NULL);

	if (!ret)
		ret = fi_ep_bind(fx.ep, &fx.av->fid, 0);
	if (!ret && attr->cntr_flags)
		ret = fi_ep_bind(fx.ep, &fx.cntr->fid, attr->cntr_flags);
	if (attr->no_cqs)
		return ret ? ret : fi_enable(fx.ep);
	if (!ret && (fx.tx_cq || attr->rx_bind_flags)) {
		ret = fi_ep_bind(fx.ep, &tx_cq->fid, FI_TRANSMIT);
		if (!ret)
			ret = fi_ep_bind(fx.ep, &fx.cq->fid,
					 FI_RECV | attr->rx_bind_flags);
	} else if (!ret) {
		ret = fi_ep_bind(fx.ep, &fx.cq->fid, FI_TRANSMIT | FI_RECV);
	}
	if (!ret)
		ret = fi_enable(fx.ep);
	return ret;
}

int fixture_try(const struct fixture_attr *attr)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = attr->format ? attr->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = attr->wait_obj,
	};
	struct fi_cntr_attr cntr_attr = { .wait_obj = attr->cntr_wait };
	struct fi_info *info = fixture_info(attr);
	int ret;

	ret = duo_domain_open(&fx.fabric.fabric_fid, info, &fx.domain, NULL);
	if (!ret) {
		fake.lock = &duo_domain_of(fx.domain)->group.lock;
		ret = fi_av_open(fx.domain, &av_attr, &fx.av, NULL);
	}
	if (!ret)
		ret = fi_cq_open(fx.domain, &cq_attr, &fx.cq, NULL);
	if (!ret && attr->two_cqs)
		ret = fi_cq_open(fx.domain, &cq_attr, &fx.tx_cq, NULL);
	if (!ret && attr->cntr_flags)
		ret = fi_cntr_open(fx.domain, &cntr_attr, &fx.cntr, NULL);
	if (!ret)
		ret = fixture_endpoint(attr, info);
	fi_freeinfo(info);
	return ret;
}

void fixture_open(const struct fixture_attr *attr)
{
	unit_dir_make();
	duo_params.defer_polls = LAZY_POLLS;
	duo_params.defer_us = 1 << 30;	/* us; not reached */
	duo_params.core_poll_interval = 1;
	fixture_fabric(attr);
}

static void fixture_close_fid(struct fid *fid)
{
	ck_assert_int_eq(fid->ops->close(fid), 0);
}

void fixture_close_ep(void)
{
	fixture_close_fid(&fx.ep->fid);
	fx.ep = NULL;
}

void fixture_close(void)
{
	int path;

	if (fx.ep)
		fixture_close_ep();
	if (fx.cntr)
		fixture_close_fid(&fx.cntr->fid);
	if (fx.tx_cq)
		fixture_close_fid(&fx.tx_cq->fid);
	if (fx.cq)
		fixture_close_fid(&fx.cq->fid);
	if (fx.av)
		fixture_close_fid(&fx.av->fid);
	fake.lock = NULL;
	if (fx.domain)
		fixture_close_fid(&fx.domain->fid);
	ck_assert_int_eq(fx.fabric.refs, 0);
	for (path = 0; path < FI_DUO_PATH_COUNT; path++) {
		if (!fx.fabric.path_fabric[path])
			continue;
		fi_close(&fx.fabric.path_fabric[path]->fid);
		ck_assert_msg(fake.path[path].live == 0,
			      "%d objects of path %d stay open",
			      fake.path[path].live, path);
	}
	ck_assert_int_eq(fake.shm.overwritten, 0);
	while (published)
		peer_withdraw();
	ck_assert_int_eq(unit_dir_count(), 0);
	unit_dir_remove();
	fi_freeinfo(fx.fabric.shm_info);
	free(fx.fabric.core_name);
	memset(&fx, 0, sizeof(fx));
	fake_fini();
}

void fixture_start(const struct fixture_attr *attr)
{
	fixture_open(attr);
	ck_assert_int_eq(fixture_try(attr), 0);
}

struct fid_ep *fixture_unbound(const struct fixture_attr *attr)
{
	struct fi_info *info = fixture_info(attr);
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	return ep;
}

struct fid_ep *fixture_another(const struct fixture_attr *attr,
			       uint64_t cq_flags)
{
	struct fid_ep *ep;

	fake.core.own_addr++;
	ep = fixture_unbound(attr);
	ck_assert_int_eq(fi_ep_bind(ep, &fx.av->fid, 0), 0);
	if (cq_flags)
		ck_assert_int_eq(fi_ep_bind(ep, &fx.cq->fid, cq_flags), 0);
	return ep;
}

void fixture_setup(void)
{
	static const struct fixture_attr attr;

	fixture_start(&attr);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
}

const char *peer_publish(uint64_t core_addr)
{
	struct duo_publication *pub = &publication[published++];
	const char *dir = duo_params.registry_dir;
	char *ns_digit;

	ck_assert_int_le(published, PUBLICATIONS);
	ck_assert_int_eq(duo_shm_publish(pub), 0);
	ns_digit = strrchr(pub->peer_name, '.') - 1;
	*ns_digit = *ns_digit == '0' ? '1' : '0';
	ck_assert_int_eq(duo_registry_reserve(dir, &core_addr, 8, false, pub),
			 0);
	unit_region_make(pub->peer_name);
	ck_assert_int_eq(duo_registry_ready(pub), 0);
	return pub->peer_name;
}

void peer_withdraw(void)
{
	shm_unlink(publication[--published].peer_name);
	duo_registry_withdraw(&publication[published]);
}

/*
 * The peer's element of publication[] stays, so that no other element moves:
 * callers have pointers to the names in publication[].
 */
void peer_end(const char *peer_name)
{
	int i;

	for (i = 0; publication[i].peer_name != peer_name; i++)
		ck_assert_int_lt(i, published - 1);
	shm_unlink(peer_name);
	duo_registry_withdraw(&publication[i]);
}

fi_addr_t peer_insert(uint64_t core_addr)
{
	fi_addr_t addr;

	ck_assert_int_eq(fi_av_insert(fx.av, &core_addr, 1, &addr, 0, NULL),
			 1);
	return addr;
}

ssize_t send_x(struct fid_ep *ep, fi_addr_t to, void *context)
{
	return fi_tsend(ep, "x", 1, NULL, to, TAG, context);
}

ssize_t try_recv(struct slot *slot, fi_addr_t src, uint64_t tag)
{
	memset(slot, 0, sizeof(*slot));
	return fi_trecv(fx.ep, slot->buf, sizeof(slot->buf), NULL, src, tag, 0,
			slot);
}

void post_recv(struct slot *slot, fi_addr_t src, uint64_t tag)
{
	ck_assert_int_eq(try_recv(slot, src, tag), 0);
}

void post_untagged(struct slot *slot, fi_addr_t src)
{
	memset(slot, 0, sizeof(*slot));
	ck_assert_int_eq(fi_recv(fx.ep, slot->buf, sizeof(slot->buf), NULL,
				 src, slot), 0);
}

ssize_t recv_flags(void *context, char *buf, size_t len, fi_addr_t src,
		   uint64_t flags)
{
	const struct iovec iov = { buf, len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = buf ? 1 : 0,
		.addr = src,
		.tag = TAG,
		.context = context,
	};

	return fi_trecvmsg(fx.ep, &msg, flags);
}

void poll_cq(int count)
{
	ssize_t ret;

	while (count--) {
		ret = fi_cq_read(fx.cq, NULL, 0);
		ck_assert(!ret || ret == -FI_EAGAIN);
	}
}

void expect_posted(uint32_t count)
{
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), count);
}

struct fi_cq_tagged_entry expect_entry(void *context, fi_addr_t src)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t from = 0;
	ssize_t ret = -FI_EAGAIN;
	int i;

	for (i = 0; i < 4 && ret == -FI_EAGAIN; i++)
		ret = fi_cq_readfrom(fx.cq, &entry, 1, &from);
	ck_assert_int_eq(ret, 1);
	ck_assert_ptr_eq(entry.op_context, context);
	ck_assert_uint_eq(from, src);
	return entry;
}

void expect_recv(struct slot *slot, const char *text, fi_addr_t src)
{
	struct fi_cq_tagged_entry entry = expect_entry(slot, src);

	ck_assert_uint_eq(entry.len, strlen(text));
	ck_assert_str_eq(slot->buf, text);
	ck_assert_uint_eq(entry.flags & (FI_RECV | FI_TAGGED),
			  FI_RECV | FI_TAGGED);
}

struct fi_cq_err_entry expect_error(void *context, int err)
{
	struct fi_cq_err_entry entry = { 0 };
	struct fi_cq_tagged_entry none;
	ssize_t ret = -FI_EAGAIN;
	int i;

	for (i = 0; i < 4 && ret == -FI_EAGAIN; i++)
		ret = fi_cq_read(fx.cq, &none, 1);
	ck_assert_int_eq(ret, -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(fx.cq, &entry, 0), 1);
	ck_assert_int_eq(entry.err, err);
	ck_assert_ptr_eq(entry.op_context, context);
	return entry;
}

void expect_nothing(void)
{
	struct fi_cq_tagged_entry none;
	int i;

	for (i = 0; i < 4 * LAZY_POLLS; i++)
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
}

struct fi_ops_duo *ops_of(struct fid_ep *ep)
{
	struct fi_ops_duo *ops;

	ck_assert_int_eq(fi_open_ops(&ep->fid, FI_DUO_OPS, 0, (void **) &ops,
				     NULL), 0);
	return ops;
}

struct fi_duo_stats stats_of(struct fid_ep *ep)
{
	struct fi_duo_stats stats;

	ck_assert_int_eq(ops_of(ep)->stats(ep, &stats, sizeof(stats)), 0);
	return stats;
}

struct fi_duo_stats stats_now(void)
{
	return stats_of(fx.ep);
}

void expect_path(struct fid_ep *ep, fi_addr_t addr, enum fi_duo_path path,
		 enum fi_duo_reason reason)
{
	const struct fi_ops_duo *ops = ops_of(ep);
	enum fi_duo_reason why;
	enum fi_duo_path how;

	ck_assert_int_eq(ops->path(ep, addr, &how, &why), 0);
	ck_assert_int_eq(how, path);
	ck_assert_msg(why == reason, "%s", ops->reason_str(why));
}

const char *local_name;
fi_addr_t local, remote;

void pair_insert(void)
{
	local_name = peer_publish(1);
	local = peer_insert(1);
	remote = peer_insert(2);
}

void pair_open(const struct fixture_attr *attr)
{
	fixture_start(attr);
	pair_insert();
}

void pair_setup(void)
{
	fixture_setup();
	pair_insert();
}

void arrive(int path, enum duo_rx_kind kind, const char *text)
{
	uint64_t tag = kind == DUO_TAGGED ? TAG : 0;

	if (path == FI_DUO_LOCAL)
		fake_shm_arrive(kind, local_name, tag, text);
	else
		fake_core_arrive(kind, remote, tag, text);
}
