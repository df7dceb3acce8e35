/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The fake shm's AV, CQ, shared receive context and endpoint. */

#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "fake.h"

static int fake_map_find(const struct fake_map *map, const char *name)
{
	int i;

	for (i = 0; i < FAKE_SHM_PEERS; i++) {
		if (map->peer[i].assigned && !strcmp(map->peer[i].name, name))
			break;
	}
	return i;
}

/*
 * Returns the peer's index. Adds a peer that is not in the map, as
 * smr_map_add() does.
 */
static int fake_map_add(struct fake_map *map, const char *name)
{
	int tries, place = fake_map_find(map, name);
	struct fake_shm_peer *peer;

	if (place < FAKE_SHM_PEERS)
		return place;
	for (tries = 0; tries < FAKE_SHM_PEERS; tries++) {
		if (!map->peer[map->next].assigned)
			break;
		map->next = (map->next + 1) % FAKE_SHM_PEERS;
	}
	place = map->next;
	map->next = (map->next + 1) % FAKE_SHM_PEERS;
	peer = &map->peer[place];
	fake.shm.overwritten += peer->assigned;
	strcpy(peer->name, name);
	peer->assigned = true;
	peer->dangling = false;
	return place;
}

struct fake_obj *fake_shm_of(struct fid_ep *ep)
{
	return fake_obj_of(&duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]->fid);
}

int fake_shm_connect(struct fake_obj *ep, const char *name)
{
	return fake_map_add(ep->bound_av->map, name);
}

const char *fake_shm_name(struct fake_obj *ep, fi_addr_t addr)
{
	struct fake_map *map = ep->bound_av->map;

	ck_assert_uint_lt(addr, FAKE_SHM_PEERS);
	ck_assert_int_ge(map->place[addr], 0);
	return map->peer[map->place[addr]].name;
}

/*
 * Returns the fi_addr of the peer with this index. If the peer has none,
 * returns the first free fi_addr.
 */
static fi_addr_t fake_shm_addr(struct fake_map *map, int place)
{
	fi_addr_t addr;

	for (addr = 0; addr < FAKE_SHM_PEERS; addr++) {
		if (map->place[addr] == place)
			return addr;
	}
	for (addr = 0; addr < FAKE_SHM_PEERS; addr++) {
		if (map->place[addr] < 0)
			break;
	}
	return addr;
}

static int fake_shm_insert(struct fid_av *av, const void *name, size_t count,
			   fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fake_obj *obj = fake_obj_of(&av->fid);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int place;

	fake_shm_check(obj);
	ck_assert_uint_eq(count, 1);
	if (!fake.shm.full) {
		place = fake_map_add(obj->map, name);
		addr = fake_shm_addr(obj->map, place);
	}
	if (addr >= FAKE_SHM_PEERS) {
		*fi_addr = FI_ADDR_NOTAVAIL;
		return 0;
	}
	obj->map->place[addr] = place;
	obj->map->peer[place].addr = addr;
	*fi_addr = addr;
	fake.shm.inserted++;
	fake_shm_learn(obj);
	return 1;
}

static struct fi_ops_av fake_shm_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = fake_shm_insert,
};

static struct fi_ops fake_shm_fid_ops =
	FAKE_FID_OPS(fake_close, fake_no_bind, fake_control, NULL);

/*
 * Fails the test if the shared memory (region) of a peer is already unmapped:
 * when an AV is closed, smr_map_del() of libfabric's shm accesses the regions
 * of all peers.
 */
static int fake_shm_av_close(struct fid *fid)
{
	struct fake_obj *obj = fake_obj_of(fid);
	int i;

	for (i = 0; i < FAKE_SHM_PEERS; i++)
		ck_assert_msg(!obj->map->peer[i].dangling, "shm looks into the "
			      "region of %s, which is closed",
			      obj->map->peer[i].name);
	LIST_REMOVE(obj->map, link);
	free(obj->map);
	return fake_close(fid);
}

static struct fi_ops fake_shm_av_fid_ops =
	FAKE_FID_OPS(fake_shm_av_close, fake_no_bind, fake_control, NULL);

static struct fake_map *fake_map_new(void)
{
	struct fake_map *map = calloc(1, sizeof(*map));
	int i;

	ck_assert_ptr_nonnull(map);
	for (i = 0; i < FAKE_SHM_PEERS; i++) {
		map->place[i] = -1;
		map->peer[i].addr = FI_ADDR_UNSPEC;
	}
	LIST_INSERT_HEAD(&fake.shm.maps, map, link);
	return map;
}

static int fake_shm_av_open(struct fid_domain *domain,
			    struct fi_av_attr *attr, struct fid_av **av,
			    void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_AV,
			    &fake_shm_av_fid_ops, &obj);

	if (ret)
		return ret;
	obj->map = fake_map_new();
	obj->av.ops = &fake_shm_av_ops;
	*av = &obj->av;
	return 0;
}

/* Polls shm. A peer provider's CQ never returns an entry. */
static ssize_t fake_shm_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	ck_assert_uint_eq(count, 0);
	fake.shm.polls++;
	fake_shm_check(fake_obj_of(&cq->fid));
	fake_shm_progress(fake_obj_of(&cq->fid));
	return -FI_EAGAIN;
}

static struct fi_ops_cq fake_shm_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = fake_shm_cq_read,
};

static int fake_shm_cq_open(struct fid_domain *domain,
			    struct fi_cq_attr *attr, struct fid_cq **cq,
			    void *context)
{
	struct fi_peer_cq_context *peer = context;
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_CQ,
			    &fake_shm_fid_ops, &obj);

	if (ret)
		return ret;
	ck_assert_uint_ne(attr->flags & FI_PEER, 0);
	ck_assert_int_eq(attr->wait_obj, FI_WAIT_NONE);
	obj->cq.ops = &fake_shm_cq_ops;
	obj->peer_cq = peer->cq;
	*cq = &obj->cq;
	return 0;
}

static int fake_shm_srx_open(struct fid_domain *domain,
			     struct fi_rx_attr *attr, struct fid_ep **srx,
			     void *context)
{
	struct fi_peer_srx_context *peer = context;
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_SRX_CTX,
			    &fake_shm_fid_ops, &obj);

	if (ret)
		return ret;
	ck_assert_uint_ne(attr->op_flags & FI_PEER, 0);
	peer->srx->peer_ops = &fake_shm_srx_ops;
	obj->srx = peer->srx;
	*srx = &obj->ep;
	return 0;
}

static int fake_shm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fake_obj *ep = fake_obj_of(fid), *obj = fake_obj_of(bfid);
	int ret = fake_enter(FI_DUO_LOCAL);

	if (ret)
		return ret;
	if (obj->fid.fclass == FI_CLASS_CNTR) {
		ck_assert_uint_eq(flags, FI_SEND);
		ep->tx_cntr = obj;
		fake_ref(ep, obj);
		return 0;
	}
	if (flags & FI_TRANSMIT)
		ep->tx_cq = obj;
	if (flags & FI_RECV)
		ep->rx_cq = obj;
	if (obj->map)
		ep->bound_av = obj;
	if (obj->srx)
		ep->srx = obj->srx;
	fake_ref(ep, obj);
	return 0;
}

/* Enables an endpoint, and creates its region (shared memory). */
static int fake_shm_enable(struct fake_obj *ep)
{
	int ret = fake_enter(FI_DUO_LOCAL);

	if (ret)
		return ret;
	ck_assert_str_ne(ep->name, "");
	unit_region_make(ep->name);
	if (!fake.shm.ep)
		fake.shm.ep = ep;
	ep->enabled = true;
	LIST_INSERT_HEAD(&ep->bound_av->map->eps, ep, map_link);
	return 0;
}

static int fake_shm_ep_control(struct fid *fid, int command, void *arg)
{
	struct fake_obj *ep = fake_obj_of(fid);

	return command == FI_ENABLE ? fake_shm_enable(ep) : -FI_ENOSYS;
}

/* In all maps, marks the peer that is the closed endpoint as dangling. */
static void fake_shm_unmap(struct fake_obj *ep)
{
	struct fake_map *map;
	int place;

	LIST_FOREACH(map, &fake.shm.maps, link) {
		place = fake_map_find(map, ep->name);
		if (place < FAKE_SHM_PEERS)
			map->peer[place].dangling = true;
	}
}

static int fake_shm_ep_close(struct fid *fid)
{
	struct fake_obj *ep = fake_obj_of(fid);

	if (ep->enabled) {
		fake_shm_close(ep);
		LIST_REMOVE(ep, map_link);
		fake_shm_unmap(ep);
		shm_unlink(ep->name);
	}
	if (fake.shm.ep == ep)
		fake.shm.ep = NULL;
	return fake_close(fid);
}

static struct fi_ops fake_shm_ep_fid_ops =
	FAKE_FID_OPS(fake_shm_ep_close, fake_shm_ep_bind, fake_shm_ep_control,
		     NULL);

static int fake_shm_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct fake_obj *ep = fake_obj_of(fid);
	int ret = fake_enter(FI_DUO_LOCAL);

	if (ret)
		return ret;
	ck_assert_uint_le(addrlen, sizeof(ep->name));
	memcpy(ep->name, addr, addrlen);
	return 0;
}

static struct fi_ops_cm fake_shm_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = fake_shm_setname,
};

/* Fails the test: ofi_duo must not cancel receives of shm. */
static ssize_t fake_shm_cancel(fid_t fid, void *context)
{
	ck_abort_msg("fi_cancel on the shm endpoint");
	return -FI_ENOSYS;
}

static struct fi_ops_ep fake_shm_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = fake_shm_cancel,
};

static int fake_shm_endpoint(struct fid_domain *domain, struct fi_info *info,
			     struct fid_ep **ep, void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_EP,
			    &fake_shm_ep_fid_ops, &obj);

	if (ret)
		return ret;
	obj->ep.ops = &fake_shm_ep_ops;
	obj->ep.cm = &fake_shm_cm_ops;
	obj->ep.msg = &fake_msg_ops;
	obj->ep.tagged = &fake_tagged_ops;
	*ep = &obj->ep;
	return 0;
}

static int fake_shm_cntr_open(struct fid_domain *domain,
			      struct fi_cntr_attr *attr,
			      struct fid_cntr **cntr, void *context)
{
	struct fi_peer_cntr_context *peer = context;
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_CNTR,
			    &fake_shm_fid_ops, &obj);

	if (ret)
		return ret;
	ck_assert_uint_eq(attr->flags, FI_PEER);
	obj->peer_cntr = peer->cntr;
	*cntr = &obj->cntr;
	return 0;
}

struct fi_ops_domain fake_shm_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = fake_shm_av_open,
	.cq_open = fake_shm_cq_open,
	.cntr_open = fake_shm_cntr_open,
	.endpoint = fake_shm_endpoint,
	.srx_ctx = fake_shm_srx_open,
};
