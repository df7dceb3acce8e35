/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_open_ops() and fi_control(): ofi_duo forwards names and commands that it
 * does not know to the core's object.
 */

#include <rdma/fi_collective.h>

#include "fixture.h"

static struct fid_mr *mr;
static char buf[64];

/*
 * The fixture opens its fabric without fi_fabric(), so the fabric lacks these
 * operations.
 */
static struct fi_ops fabric_ops = {
	.size = sizeof(struct fi_ops),
	.control = duo_core_control,
	.ops_open = duo_core_ops_open,
};

static void setup(void)
{
	fixture_setup();
	fx.fabric.fabric_fid.fid.fclass = FI_CLASS_FABRIC;
	fx.fabric.fabric_fid.fid.ops = &fabric_ops;
	ck_assert_int_eq(fi_mr_reg(fx.domain, buf, sizeof(buf), FI_RECV, 0, 0,
				   0, &mr, NULL), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	fixture_close();
}

#define OBJECTS 6

/* Returns an object of ofi_duo, and in *core the core's object. */
static struct fid *object(int which, struct fid **core)
{
	struct duo_ep *ep = fixture_ep();
	struct fid *const ours[OBJECTS] = {
		&fx.fabric.fabric_fid.fid, &fx.domain->fid, &fx.av->fid,
		&fx.cq->fid, &fx.ep->fid, &mr->fid,
	};
	struct fid *const cores[OBJECTS] = {
		&fx.fabric.path_fabric[FI_DUO_CORE]->fid,
		&ep->domain->path_domain[FI_DUO_CORE]->fid,
		&ep->av->core->fid,
		&ep->rx_cq->path_cq[FI_DUO_CORE]->fid,
		&ep->path_ep[FI_DUO_CORE]->fid,
		&duo_container_of(mr, struct duo_mr, mr_fid)->core->fid,
	};

	*core = cores[which];
	return ours[which];
}

UNIT_CASE("forward", setup, teardown);

UNIT_LOOP(unknown_operations_reach_core, 0, OBJECTS)
{
	struct fid *core, *fid = object(_i, &core);
	void *ops = NULL;

	ck_assert_int_eq(fi_open_ops(fid, FAKE_OPS, 0, &ops, NULL), 0);
	ck_assert_ptr_eq(ops, &fake_ops);
	ck_assert_ptr_eq(fake.core.asked, core);
	ops = NULL;
	ck_assert_int_eq(fi_open_ops(fid, "nobody's", 0, &ops, NULL),
			 -FI_ENOSYS);
	ck_assert_ptr_null(ops);
	ck_assert_int_eq(fi_open_ops(fid, NULL, 0, &ops, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_open_ops(fid, FAKE_OPS, 0, NULL, NULL),
			 -FI_EINVAL);
}

/*
 * If ofi_duo does not know a command, it passes the command to the core.
 * ofi_duo must reject FI_ALIAS, FI_QUEUE_WORK and FI_SETOPSFLAG: the core would
 * execute them on its own endpoint, and ofi_duo's endpoint would not take part.
 */
UNIT_LOOP(unknown_commands_reach_core, 0, OBJECTS)
{
	struct fid *core, *fid = object(_i, &core);

	ck_assert_int_eq(fi_control(fid, FAKE_COMMAND, NULL), 0);
	ck_assert_ptr_eq(fake.core.asked, core);
	ck_assert_int_eq(fi_control(fid, FAKE_COMMAND + 1, NULL), -FI_ENOSYS);
	fake.core.asked = NULL;
	ck_assert_int_eq(fi_control(fid, FI_ALIAS, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(fid, FI_QUEUE_WORK, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_control(fid, FI_SETOPSFLAG, NULL), -FI_ENOSYS);
	ck_assert_ptr_null(fake.core.asked);
}

UNIT_TEST(region_operations_get_core_region)
{
#ifdef FI_EFA_DOMAIN_OPS
	struct fi_efa_mr_attr attr;
	struct fi_efa_ops_domain *ops;

	ck_assert_int_eq(fi_open_ops(&fx.domain->fid, FI_EFA_DOMAIN_OPS, 0,
				     (void **) &ops, NULL), 0);
	ck_assert_int_eq(ops->query_mr(mr, &attr), 0);
	ck_assert_ptr_eq(fake.core.queried_mr,
			 duo_container_of(mr, struct duo_mr, mr_fid)->core);
#endif
}

/*
 * Since libfabric 2.2, the table of FI_EFA_DOMAIN_OPS has four more functions.
 * An application that was built with 2.2 or newer calls them without a check
 * for NULL. So ofi_duo's table must have them, and they must return an error.
 */
UNIT_TEST(newer_domain_operations_are_rejected)
{
#ifdef FI_EFA_DOMAIN_OPS
	const struct {
		int (*query_mr)(struct fid_mr *mr, struct fi_efa_mr_attr *attr);
		int (*newer[4])(struct fid *fid);
	} *ops;
	int i;

	ck_assert_int_eq(fi_open_ops(&fx.domain->fid, FI_EFA_DOMAIN_OPS, 0,
				     (void **) &ops, NULL), 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(ops->newer[i](&fx.domain->fid),
				 -FI_EOPNOTSUPP);
#endif
}

/*
 * Functions with endpoints or CQs as arguments are rejected, because ofi_duo
 * would pass its own objects to the core.
 */
UNIT_TEST(queue_operations_are_rejected)
{
	void *ops;

	ck_assert_int_eq(fi_open_ops(&fx.domain->fid, DUO_EFA_GDA_OPS, 0, &ops,
				     NULL), -FI_EOPNOTSUPP);
}

UNIT_TEST(size_left_is_not_supported)
{
	ck_assert_int_eq(fx.ep->ops->rx_size_left(fx.ep), -FI_ENOSYS);
	ck_assert_int_eq(fx.ep->ops->tx_size_left(fx.ep), -FI_ENOSYS);
}

/*
 * ofi_duo must reject named AVs, FI_AV_USER_ID and FI_PEER, even if the core
 * supports them: ofi_duo does not implement them.
 */
UNIT_TEST(shared_objects_are_rejected)
{
	struct fi_av_attr named = { .name = "av" };
	struct fi_av_attr ids = { .flags = FI_AV_USER_ID };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fid_cntr *cntr;
	fi_addr_t id = 7;
	struct fid_av *av;
	struct fid_cq *cq;

	ck_assert_int_eq(fi_av_open(fx.domain, &named, &av, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_av_open(fx.domain, &ids, &av, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_av_insert(fx.av, "name", 1, &id, FI_AV_USER_ID,
				      NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insertsvc(fx.av, "host", "1", &id,
					 FI_AV_USER_ID, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_insertsym(fx.av, "host", 1, "1", 1, &id,
					 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_cq_open(fx.domain, &cq_attr, &cq, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_cntr_open(fx.domain, &cntr_attr, &cntr, NULL),
			 -FI_ENOSYS);
}

/*
 * ofi_duo's endpoints need functions that return -FI_ENOSYS, because libfabric
 * calls collective operations without a check for NULL.
 */
UNIT_TEST(collective_operations_are_rejected)
{
	const enum fi_datatype type = FI_UINT64;
	struct fi_msg_collective msg = { 0 };
	struct fid_ep *ep = fx.ep;
	char in[8] = { 0 }, out[8];

	ck_assert_int_eq(fi_barrier(ep, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_barrier2(ep, 0, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_broadcast(ep, in, 1, NULL, 0, 0, type, 0, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_alltoall(ep, in, 1, NULL, out, NULL, 0, type, 0,
				     NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_allgather(ep, in, 1, NULL, out, NULL, 0, type, 0,
				      NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_allreduce(ep, in, 1, NULL, out, NULL, 0, type,
				      FI_SUM, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_reduce_scatter(ep, in, 1, NULL, out, NULL, 0, type,
					   FI_SUM, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_reduce(ep, in, 1, NULL, out, NULL, 0, 0, type,
				   FI_SUM, 0, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_scatter(ep, in, 1, NULL, out, NULL, 0, 0, type, 0,
				    NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_gather(ep, in, 1, NULL, out, NULL, 0, 0, type, 0,
				   NULL), -FI_ENOSYS);
	ck_assert_int_eq(ep->collective->msg(ep, &msg, NULL, NULL, 0, 0),
			 -FI_ENOSYS);
}
