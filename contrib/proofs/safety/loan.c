/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Requests with a loan at the target. The loan names a region of the
 * initiator's device memory, so that the target's device maps the region and
 * copies between it and the target's host memory: see near/rma/stage.h. The
 * loan and the initiator's region table have any bytes. Asserted:
 * - each copy is between bytes of the mapping and bytes of the region or
 *   message that the request names, in the direction of the request;
 * - the entry in the initiator's table permits the copy;
 * - a region of device memory is not copied as host memory;
 * - a mapping counts as used while a copy is pending.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/loan.c near_loan_serve near_loan_copy near_loan_map
 * C: near/rma/loan.c near_loan_local near_loan_end
 * CBMC: --unwind 3 --object-bits 10
 * MUTANT device-as-host near/rma/loan.c: s/device \? NEAR_LOAN_REJECTED : 0/0/
 * MUTANT buffer-unlimited near/rma/loan.c: \
 *   s/local->iov_len <= op->iov\[0\].iov_len \?/1 ?/
 * MUTANT unknown-message near/rma/loan.c: \
 *   s/if \(!op\)\n\t*return EKEYREJECTED;//
 * MUTANT right-unchecked near/rma/loan.c: \
 *   s/args.len, NEAR_MAY_LEND,/args.len, 0,/
 * MUTANT range-unchecked near/rma/loan.c: \
 *   s/loan->addr, args.len,/loan->addr, 0,/
 * MUTANT copied-without-device near/rma/loan.c: s/!device \|\| //
 * MUTANT direction-fixed near/rma/loan.c: \
 *   s/bool read = reply->req.verb == NEAR_READ;/bool read = true;/
 * MUTANT uncounted near/rma/loan.c: s/mapping->ops\+\+;//
 * MUTANT used-after-end near/rma/loan.c: s/reply->mapping->ops--;//
 */

#include <stdlib.h>

#include "hostile.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

static struct near_port port;
static struct near_peer peer;
static struct near_rma_peer at;
static struct near_table_view view;
static struct near_region_entry entry;	/* in the initiator's table */
static struct near_mapping mapping;
static struct near_rma_reply reply;
static struct near_tx_op message;
static bool host_region;	/* the named region is host memory */
static char *region, *area;
static size_t region_len, area_len;

const struct near_tx_op *near_stage_message(const struct near_port *of,
					    const struct near_peer *to,
					    const struct near_rma_reply *from)
{
	check(to == &peer && from == &reply);
	return any(bool) ? NULL : &message;
}

int near_stage_where(const struct near_port *of,
		     const struct near_rma_slot *req, uint64_t addr,
		     uint8_t **memory, void **device)
{
	check(req == &reply.req && addr == reply.addr);
	if (any(bool) || req->total > region_len)
		return EACCES;
	*memory = (uint8_t *)region;
	*device = host_region ? NULL : region;
	return 0;
}

static void *device_host(void *ctx, const void *memory, size_t len)
{
	check(readable(memory, len));
	return any(bool) ? NULL : &mapping;
}

static int device_start(void *device, void *to, const void *from, size_t len,
			void **copy)
{
	bool read = reply.req.verb == NEAR_READ;
	const void *lent = read ? to : from, *ours = read ? from : to;

	check(device && len == reply.req.total);
	check(__CPROVER_same_object(lent, area) && readable(lent, len));
	check(__CPROVER_same_object(ours, region) && readable(ours, len));
	check(reply.req.flags & NEAR_RMA_BY_ID || host_region);
	if (any(bool))
		return -EIO;
	*copy = area;
	return 0;
}

static const struct near_device device = {
	.start = device_start, .host = device_host,
};
static const struct near_rma_sink sink = { .device = &device };

#include "near/rma/loan.c"

struct near_table_view *near_rma_view_open(struct near_rma_peer *of)
{
	return any(bool) ? NULL : &view;
}

int near_table_view_find(struct near_table_view *of, uint64_t key,
			 struct near_region_entry *found)
{
	*found = entry = any(struct near_region_entry);
	at.view = &view;
	return any(bool) ? 0 : -EAGAIN;
}

enum near_device_path near_mapping_get(struct near_port *of,
				       struct near_rma_peer *to,
				       const struct near_rma_args *args,
				       const struct near_region_entry *found,
				       uint64_t memory,
				       struct near_mapping **got)
{
	uint64_t offset = memory - entry.memory;

	check(args->len == reply.req.total && entry.access & NEAR_MAY_LEND);
	check(offset <= entry.len && args->len <= entry.len - offset);
	if (any(bool))
		*got = &mapping;
	return NEAR_DEVICE_MAPPED;
}

uint8_t *near_mapping_at(const struct near_mapping *of, uint64_t memory,
			 size_t len)
{
	check(of == &mapping);
	return len <= area_len ? (uint8_t *)area : NULL;
}

int main(void)
{
	static struct near_rma rma = { .sink = &sink };
	struct near_loan *loan = malloc(sizeof(*loan));
	int ret;

	region_len = any(size_t);
	area_len = any(size_t);
	assume(region_len < 1u << 20 && area_len < 1u << 20);
	region = malloc(region_len);
	area = malloc(area_len);
	port.rma = &rma;
	at.peer = &peer;
	at.view = any(bool) ? &view : NULL;
	host_region = any(bool);
	reply.req.verb = any(bool) ? NEAR_READ : NEAR_WRITE;
	reply.req.total = any(uint64_t);
	reply.req.flags = any(bool) ? NEAR_RMA_BY_ID : 0;
	reply.addr = any(uint64_t);
	assume(reply.req.total);
	message.len = any(uint64_t);
	message.iov[0].iov_base = region;
	message.iov[0].iov_len = region_len;
	ret = near_loan_serve(&port, &at, &reply, loan);
	check(ret >= 0 && !reply.mapping == !!ret);
	check(mapping.ops == !ret && !reply.copy == !!ret);
	reply.copy = NULL;
	near_loan_end(&reply);
	check(!mapping.ops && !reply.mapping);
	return 0;
}
