/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The fake core's AV, CQ and endpoint; its addresses are 8-byte numbers. */

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "fake.h"

struct fake_obj *fake_core_of(struct fid_ep *ep)
{
	return fake_obj_of(&duo_ep_of(ep)->path_ep[FI_DUO_CORE]->fid);
}

struct fake_table *fake_core_table(struct fid_av *av)
{
	return fake_obj_of(&av->fid)->table;
}

/* Returns the address's fi_addr; a new address gets the lowest free one. */
fi_addr_t fake_core_learn(struct fid_av *av, uint64_t addr)
{
	struct fake_table *table = fake_core_table(av);
	fi_addr_t at;

	for (at = 0; at < FAKE_PEERS; at++) {
		if (table->addr[at] == addr)
			return at;
	}
	for (at = 0; table->addr[at] != FAKE_FREE; at++)
		ck_assert_uint_lt(at, FAKE_PEERS - 1);
	table->addr[at] = addr;
	return at;
}

/* Inserts addresses up to the first rejected one, as efa does. */
static int fake_core_insert(struct fid_av *av, const void *addr, size_t count,
			    fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	const char *from = addr;
	uint64_t number;
	size_t i;

	for (i = 0; i < count; i++)
		fi_addr[i] = FI_ADDR_NOTAVAIL;
	for (i = 0; i < count; i++) {
		memcpy(&number, from + i * 8, 8);
		if (number == fake_core_table(av)->rejected)
			break;
		fi_addr[i] = fake_core_learn(av, number);
	}
	return i;
}

static int fake_core_remove(struct fid_av *av, fi_addr_t *fi_addr,
			    size_t count, uint64_t flags)
{
	struct fake_table *table = fake_core_table(av);

	while (count--) {
		if (fi_addr[count] >= FAKE_PEERS ||
		    table->addr[fi_addr[count]] == FAKE_FREE)
			return -FI_EINVAL;
		if (!fake.core.keeps)
			table->addr[fi_addr[count]] = FAKE_FREE;
	}
	return 0;
}

static int fake_core_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr,
			    size_t *addrlen)
{
	struct fake_table *table = fake_core_table(av);

	if (fi_addr >= FAKE_PEERS || table->addr[fi_addr] == FAKE_FREE)
		return -FI_EINVAL;
	memcpy(addr, &table->addr[fi_addr], *addrlen < 8 ? *addrlen : 8);
	*addrlen = 8;
	return 0;
}

static struct fi_ops_av fake_core_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = fake_core_insert,
	.remove = fake_core_remove,
	.lookup = fake_core_lookup,
};

static int fake_core_av_close(struct fid *fid)
{
	struct fake_table *table = fake_obj_of(fid)->table;
	int ret = fake_close(fid);

	if (!ret)
		free(table);
	return ret;
}

static struct fi_ops fake_core_av_fid_ops =
	FAKE_FID_OPS(fake_core_av_close, fake_no_bind, fake_control,
		     fake_ops_open);

static int fake_core_av_open(struct fid_domain *domain,
			     struct fi_av_attr *attr, struct fid_av **av,
			     void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_AV,
			    &fake_core_av_fid_ops, &obj);

	if (ret)
		return ret;
	ck_assert_int_eq(attr->type, FI_AV_TABLE);
	obj->table = calloc(1, sizeof(*obj->table));
	ck_assert_ptr_nonnull(obj->table);
	memset(obj->table->addr, 0xff, sizeof(obj->table->addr));
	obj->table->rejected = FAKE_FREE;
	obj->av.ops = &fake_core_av_ops;
	*av = &obj->av;
	return 0;
}

static void fake_core_take(struct fake_event *event)
{
	STAILQ_REMOVE(&fake.core.events, event, fake_event, link);
	free(event);
}

/*
 * Reads completions up to the first error entry. Returns their number, or
 * -FI_EAVAIL if an error entry is first.
 */
static ssize_t fake_core_readfrom(struct fid_cq *cq, void *buf, size_t count,
				  fi_addr_t *src)
{
	const struct fake_obj *obj = fake_obj_of(&cq->fid);
	struct fi_cq_tagged_entry *out = buf;
	struct fake_event *event;
	size_t i;

	fake.core.polls++;
	for (i = 0; i < count; i++) {
		event = fake_core_next(obj);
		if (!event || event->entry.err)
			break;
		out[i] = (struct fi_cq_tagged_entry) {
			event->entry.op_context, event->entry.flags,
			event->entry.len, event->entry.buf, event->entry.data,
			event->entry.tag,
		};
		src[i] = event->src;
		fake_core_take(event);
	}
	if (i)
		return i;
	return fake_core_next(obj) ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t fake_core_readerr(struct fid_cq *cq,
				 struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct fake_event *event = fake_core_next(fake_obj_of(&cq->fid));

	if (!event || !event->entry.err)
		return -FI_EAGAIN;
	*entry = event->entry;
	fake_core_take(event);
	return 1;
}

static const char *fake_core_strerror(struct fid_cq *cq, int prov_errno,
				      const void *data, char *buf, size_t len)
{
	return "the core's text";
}

static struct fi_ops_cq fake_core_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.readfrom = fake_core_readfrom,
	.readerr = fake_core_readerr,
	.strerror = fake_core_strerror,
};

static int fake_core_cq_close(struct fid *fid)
{
	int fd = fake_obj_of(fid)->wait_fd, ret = fake_close(fid);

	if (!ret && fd)
		close(fd);
	return ret;
}

static int fake_core_cq_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_GETWAIT || !fake_obj_of(fid)->wait_fd ||
	    fake.core.no_getwait)
		return fake_control(fid, command, arg);
	*(int *) arg = fake_obj_of(fid)->wait_fd;
	return 0;
}

/* Clears the CQ's descriptor. Returns -FI_EAGAIN if the CQ has an event. */
int fake_core_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	struct fake_obj *cq = fake_obj_of(fids[0]);
	eventfd_t events;

	ck_assert_int_eq(count, 1);
	ck_assert_int_ne(cq->wait_fd, 0);
	eventfd_read(cq->wait_fd, &events);
	return fake_core_next(cq) ? -FI_EAGAIN : 0;
}

static struct fi_ops fake_core_cq_fid_ops =
	FAKE_FID_OPS(fake_core_cq_close, fake_no_bind, fake_core_cq_control,
		     fake_ops_open);

static int fake_core_cq_open(struct fid_domain *domain,
			     struct fi_cq_attr *attr, struct fid_cq **cq,
			     void *context)
{
	struct fake_obj *obj;
	int ret;

	if (fake.core.no_wait && attr->wait_obj != FI_WAIT_NONE)
		return -FI_ENOSYS;
	ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_CQ,
			&fake_core_cq_fid_ops, &obj);
	if (ret)
		return ret;
	ck_assert_int_eq(attr->format, FI_CQ_FORMAT_TAGGED);
	if (attr->wait_obj == FI_WAIT_FD)
		fake.core.wait_fd = obj->wait_fd = fake.core.wait_file ?
			memfd_create("", 0) : eventfd(0, EFD_NONBLOCK);
	if (attr->size < FAKE_CQ_SIZE)
		attr->size = FAKE_CQ_SIZE;
	obj->cq.ops = &fake_core_cq_ops;
	*cq = &obj->cq;
	return 0;
}

static int fake_core_bind_av(struct fake_obj *ep, struct fake_obj *av)
{
	if (ep->bound_av)
		return -FI_EINVAL;
	ep->bound_av = av;
	fake_ref(ep, av);
	return 0;
}

static int fake_core_ep_bind(struct fid *fid, struct fid *bfid,
			     uint64_t flags)
{
	int ret = fake_enter(FI_DUO_CORE);

	if (ret)
		return ret;
	if (bfid->fclass == FI_CLASS_AV)
		return fake_core_bind_av(fake_obj_of(fid), fake_obj_of(bfid));
	if (bfid->fclass == FI_CLASS_CNTR && flags & FI_SEND)
		fake_obj_of(fid)->tx_cntr = fake_obj_of(bfid);
	if (bfid->fclass == FI_CLASS_CQ && flags & FI_TRANSMIT)
		fake_obj_of(fid)->tx_cq = fake_obj_of(bfid);
	if (bfid->fclass == FI_CLASS_CQ && flags & FI_RECV)
		fake_obj_of(fid)->rx_cq = fake_obj_of(bfid);
	fake_ref(fake_obj_of(fid), fake_obj_of(bfid));
	return 0;
}

static int fake_core_ep_control(struct fid *fid, int command, void *arg)
{
	fake_obj_of(fid);
	return command == FI_ENABLE ? fake_enter(FI_DUO_CORE) :
				      fake_control(fid, command, arg);
}

static int fake_core_ep_close(struct fid *fid)
{
	int err = fake.core.close_err;

	fake.core.close_err = 0;
	return err ? -err : fake_close(fid);
}

static struct fi_ops fake_core_ep_fid_ops =
	FAKE_FID_OPS(fake_core_ep_close, fake_core_ep_bind,
		     fake_core_ep_control, fake_ops_open);

static int fake_core_setopt(fid_t fid, int level, int optname,
			    const void *optval, size_t optlen)
{
	fake_obj_of(fid);
	if (DUO_OPT_IN_ORDER(optname))
		return 0;
	if (optname != FI_OPT_SHARED_MEMORY_PERMITTED)
		return optname == FI_OPT_CUDA_API_PERMITTED &&
		       fake.core.cuda_option ? 0 : -FI_ENOPROTOOPT;
	fake.core.shm_off = !*(const bool *) optval;
	return 0;
}

static int fake_core_getopt(fid_t fid, int level, int optname, void *optval,
			    size_t *optlen)
{
	fake_obj_of(fid);
	if (optname != FI_OPT_MIN_MULTI_RECV || !fake.core.min_multi_recv)
		return -FI_ENOPROTOOPT;
	ck_assert_uint_ge(*optlen, sizeof(size_t));
	*(size_t *) optval = fake.core.min_multi_recv;
	*optlen = sizeof(size_t);
	return 0;
}

static struct fi_ops_ep fake_core_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = fake_core_cancel,
	.getopt = fake_core_getopt,
	.setopt = fake_core_setopt,
};

static int fake_core_getname(fid_t fid, void *addr, size_t *addrlen)
{
	int ret = fake_enter(FI_DUO_CORE);

	fake_obj_of(fid);
	if (ret)
		return ret;
	ck_assert_uint_ge(*addrlen, 8);
	memcpy(addr, &fake.core.own_addr, 8);
	*addrlen = 8;
	return 0;
}

static struct fi_ops_cm fake_core_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = fake_core_getname,
};

static int fake_core_endpoint(struct fid_domain *domain, struct fi_info *info,
			      struct fid_ep **ep, void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_EP,
			    &fake_core_ep_fid_ops, &obj);

	fake_no_fids(info);
	ck_assert(!duo_info_prefix(info) && !info->ep_attr->msg_prefix_size);
	if (ret)
		return ret;
	obj->ep.ops = &fake_core_ep_ops;
	obj->ep.cm = &fake_core_cm_ops;
	obj->ep.msg = &fake_msg_ops;
	obj->ep.tagged = &fake_tagged_ops;
	obj->ep.rma = &fake_rma_ops;
	obj->ep.atomic = &fake_atomic_ops;
	*ep = &obj->ep;
	return 0;
}

static uint64_t fake_core_cntr_read(struct fid_cntr *cntr)
{
	fake.core.cntr_reads++;
	return fake_obj_of(&cntr->fid)->good;
}

static uint64_t fake_core_cntr_readerr(struct fid_cntr *cntr)
{
	return fake_obj_of(&cntr->fid)->bad;
}

static struct fi_ops_cntr fake_core_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = fake_core_cntr_read,
	.readerr = fake_core_cntr_readerr,
};

static int fake_core_cntr_open(struct fid_domain *domain,
			       struct fi_cntr_attr *attr,
			       struct fid_cntr **cntr, void *context)
{
	struct fake_obj *obj;
	int ret = fake_open(fake_obj_of(&domain->fid), FI_CLASS_CNTR,
			    &fake_fid_ops, &obj);

	if (ret)
		return ret;
	obj->cntr.ops = &fake_core_cntr_ops;
	fake.core.cntr = obj;
	*cntr = &obj->cntr;
	return 0;
}

struct fi_ops_domain fake_core_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = fake_core_av_open,
	.cq_open = fake_core_cq_open,
	.endpoint = fake_core_endpoint,
	.cntr_open = fake_core_cntr_open,
	.query_atomic = fake_query_atomic,
};
