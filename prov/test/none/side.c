/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "core/none.h"
#include "side.h"

static struct fid_fabric *fabric;
struct fid_domain *domain;
struct fid_av *av;
struct fid_cq *cq[2];
struct fid_ep *ep[2];	/* the receiver and its peer */
fi_addr_t peer;
enum fi_wait_obj recv_wait;

void side_module(void)
{
	duo_prov.name = NEAR_NAME;
	duo_params.core = DUO_NONE;
	duo_params.cores = "";
}

struct fid_fabric *side_fabric(void)
{
	struct fi_fabric_attr attr = {
		.api_version = FI_VERSION(1, 17),
		.prov_name = NEAR_NAME,
		.name = NEAR_NAME,
	};
	struct fid_fabric *opened;

	side_module();
	ck_assert(!duo_fabric_open(&attr, &opened, NULL));
	return opened;
}

struct fid_fabric *side_opened(void)
{
	return fabric;
}

struct fi_info *side_info(enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup(NEAR_NAME);
	hints->domain_attr->threading = threading;
	side_module();
	ck_assert(!duo_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints,
			       &info));
	fi_freeinfo(hints);
	return info;
}

static void recv_open(const struct fi_info *info, int i)
{
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED, .size = RECV_CQ,
		.wait_obj = recv_wait,
	};

	ck_assert(!fi_cq_open(domain, &cq_attr, &cq[i], NULL));
	ck_assert(!fi_endpoint(domain, (struct fi_info *) info, &ep[i],
			       NULL));
	ck_assert(!fi_ep_bind(ep[i], &av->fid, 0));
	ck_assert(!fi_ep_bind(ep[i], &cq[i]->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(ep[i]));
}

fi_addr_t recv_insert(struct fid_ep *of)
{
	struct near_addr name;
	size_t len = sizeof(name);
	fi_addr_t addr;

	ck_assert(!fi_getname(&of->fid, &name, &len));
	ck_assert_int_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL), 1);
	return addr;
}

void recv_setup(void)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *info = side_info(FI_THREAD_DOMAIN);

	fabric = side_fabric();
	ck_assert(!fi_domain(fabric, info, &domain, NULL));
	ck_assert(!fi_av_open(domain, &av_attr, &av, NULL));
	recv_open(info, 0);
	recv_open(info, 1);
	fi_freeinfo(info);
	peer = recv_insert(ep[1]);
}

void recv_close(int i)
{
	ck_assert(!fi_close(&ep[i]->fid));
	ck_assert(!fi_close(&cq[i]->fid));
	ep[i] = NULL;
}

void recv_teardown(void)
{
	if (ep[1])
		recv_close(1);
	recv_close(0);
	ck_assert(!fi_close(&av->fid));
	ck_assert(!fi_close(&domain->fid));
	ck_assert(!fi_close(&fabric->fid));
}

void *recv_sent(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(cq[1], &entry, 1)) == -FI_EAGAIN)
		fi_cq_read(cq[0], NULL, 0);
	ck_assert_int_eq(ret, 1);
	return entry.op_context;
}

int recv_multi(void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = addr, .context = buf,
	};

	return fi_recvmsg(ep[0], &msg, FI_MULTI_RECV);
}

int recv_end(const void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(cq[0], &entry, 1);
	} while (ret == -FI_EAGAIN);
	if (ret == 1) {
		ck_assert_ptr_eq(entry.op_context, context);
		return 0;
	}
	ck_assert_int_eq(ret, -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(cq[0], &err, 0), 1);
	ck_assert_ptr_eq(err.op_context, context);
	return err.err;
}
