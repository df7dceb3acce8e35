/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The fake shm's AV, CQ, shared receive context and endpoint. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fake.h"

#define FAKE_REGION 4096	/* bytes */

/* A name that is known keeps its place, another gets the first free one. */
static int fake_shm_insert(struct fid_av *av, const void *addr, size_t count,
			   fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fake_shm *shm = &fake.shm;
	size_t i;

	fake_shm_check(fake_obj_of(&av->fid));
	ck_assert_uint_eq(count, 1);
	for (i = 0; i < shm->peer_count; i++) {
		if (!strcmp(shm->peer[i], addr))
			break;
	}
	if (i == shm->peer_count) {
		for (i = 0; i < shm->peer_count && shm->peer[i][0]; i++)
			;
		if (shm->full || i == FAKE_PEERS) {
			*fi_addr = FI_ADDR_NOTAVAIL;
			return 0;
		}
		strcpy(shm->peer[i], addr);
		if (i == shm->peer_count)
			shm->peer_count++;
	}
	*fi_addr = i;
	fake_shm_learn();
	return 1;
}

static int fake_shm_remove(struct fid_av *av, fi_addr_t *fi_addr,
			   size_t count, uint64_t flags)
{
	fake_shm_check(fake_obj_of(&av->fid));
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_lt(*fi_addr, fake.shm.peer_count);
	fake.shm.peer[*fi_addr][0] = 0;
	fake.shm.removed++;
	return 0;
}

static struct fi_ops_av fake_shm_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = fake_shm_insert,
	.remove = fake_shm_remove,
};

static struct fi_ops fake_shm_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fake_close,
	.bind = fake_no_bind,
	.control = fake_no_control,
};

static int fake_shm_av_open(struct fid_domain *domain,
			    struct fi_av_attr *attr, struct fid_av **av,
			    void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_AV,
			    &fake_shm_fid_ops, &obj);

	if (ret)
		return ret;
	obj->av.ops = &fake_shm_av_ops;
	*av = &obj->av;
	return 0;
}

/* Nothing is ever read from a peer CQ; this is progress. */
static ssize_t fake_shm_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	ck_assert_uint_eq(count, 0);
	fake.shm.polls++;
	fake_shm_check(fake_obj_of(&cq->fid));
	if (fake.shm.ep && fake.shm.ep->rx_cq == fake_obj_of(&cq->fid))
		fake_shm_progress();
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
	fake.shm.srx = peer->srx;
	*srx = &obj->ep;
	return 0;
}

static int fake_shm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fake_obj *ep = fake_obj_of(fid), *obj = fake_obj_of(bfid);
	int ret = fake_enter(FI_DUO_SHM);

	if (ret)
		return ret;
	if (flags & FI_TRANSMIT)
		ep->tx_cq = obj;
	if (flags & FI_RECV)
		ep->rx_cq = obj;
	fake_ref(ep, obj);
	return 0;
}

/* Enabling makes the region, as long as it has a name. */
static int fake_shm_enable(struct fake_obj *ep)
{
	int fd, ret = fake_enter(FI_DUO_SHM);

	if (ret)
		return ret;
	ck_assert_str_ne(ep->name, "");
	shm_unlink(ep->name);	/* of a test that was killed: pids recur */
	fd = shm_open(ep->name, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return -errno;
	ck_assert_int_eq(ftruncate(fd, FAKE_REGION), 0);
	close(fd);
	fake.shm.ep = ep;
	return 0;
}

static int fake_shm_ep_control(struct fid *fid, int command, void *arg)
{
	struct fake_obj *ep = fake_obj_of(fid);

	return command == FI_ENABLE ? fake_shm_enable(ep) : -FI_ENOSYS;
}

static int fake_shm_ep_close(struct fid *fid)
{
	struct fake_obj *ep = fake_obj_of(fid);

	if (fake.shm.ep == ep) {
		fake_shm_close();
		shm_unlink(ep->name);
		fake.shm.ep = NULL;
	}
	return fake_close(fid);
}

static struct fi_ops fake_shm_ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fake_shm_ep_close,
	.bind = fake_shm_ep_bind,
	.control = fake_shm_ep_control,
};

static int fake_shm_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct fake_obj *ep = fake_obj_of(fid);
	int ret = fake_enter(FI_DUO_SHM);

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

/* fi_cancel and fi_setopt of shm's endpoint must not be called. */
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

struct fi_ops_domain fake_shm_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = fake_shm_av_open,
	.cq_open = fake_shm_cq_open,
	.endpoint = fake_shm_endpoint,
	.srx_ctx = fake_shm_srx_open,
};
