/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Requests for RMA and atomics at the target, with any bytes in the slot. All
 * accesses are to the ring, to the reply, or to the region that the request
 * names, if the region permits the access. Atomics are aligned. The bytes of a
 * reply come from the region, or from the stored result of an atomic. Each
 * reply is freed once.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/serve.c near_rma_request near_serve_small near_small_req
 * C: near/rma/serve.c near_rma_serve_slot near_rma_operands_in near_rma_serve
 * C: near/rma/serve.c near_rma_is_invalid near_rma_find_memory near_rma_execute
 * C: near/rma/serve.c near_rma_queue_reply
 * C: near/rma/serve.c near_rma_read_next near_rma_reply_all
 * C: near/rma/serve.c near_rma_answer near_rma_report near_small_slot
 * C: near/rma/state.h near_rma_operands near_rma_access
 * C: near/rma/delegate.h near_deleg_execute near_deleg_done
 * C: near/rma/atomic.c near_rma_has_atomic near_atomic_valid near_type_size
 * CBMC: --unwind 4 -DRINGS_CLASS=0 --object-bits 10
 * LONG: 8 s of CPU time
 * CASES: 2
 * EDIT near/rma/serve.c: s/near_table_find\(/found(/g
 * EDIT near/rma/serve.c: s/near_pool_get\(/reply_get(/g
 * EDIT near/rma/serve.c: s/near_pool_put\(/reply_put(/g
 * EDIT near/rma/serve.c: s/near_atomic_apply\(/applied(/g
 * EDIT near/rma/serve.c: s/port->rma->sink->event\(/reported(/
 * EDIT near/rma/serve.c: s/near_copy_small\(/region_bytes(/g
 * EDIT near/rma/serve.c: s/value = hostile_change\(/value = region_add(/
 * EDIT near/rma/serve.c: \
 *   s/\tnear_rma_reply_all\(port, at\);/\tanswers_queued(at);/
 * EDIT near/rma/serve.c: s/offset \+ NEAR_STEP/offset + 2/
 * MUTANT read-has-no-operands near/rma/state.h: \
 *   s/\(verb == NEAR_FETCH && op == NEAR_ATOMIC_READ\)\)\n\t\treturn 0/op \
 *   == NEAR_ATOMIC_READ)\n\t\treturn 0/
 * MUTANT write-to-read-only near/rma/state.h: \
 *   s/if \(verb == NEAR_READ \|\| \(verb == NEAR_FETCH && op/if (verb == \
 *   NEAR_READ || (op/
 * MUTANT part-unchecked near/rma/serve.c: \
 *   s/req->len > req->total - req->offset\)/0)/
 * MUTANT offset-unchecked near/rma/serve.c: s/ \|\| req->offset > req->total//
 * MUTANT atomic-unchecked near/rma/serve.c: \
 *   s/if \(!near_rma_has_atomic/if (0 \&\& !near_rma_has_atomic/
 * MUTANT atomic-too-long near/rma/serve.c: s/req->len > NEAR_RMA_PART \|\| //
 * MUTANT offset-unaligned near/rma/serve.c: \
 *   s/req->len % size \|\|\n\t *req->offset % size/req->len % size/
 * MUTANT address-unaligned near/rma/serve.c: \
 *   s/req->verb > NEAR_READ && at %/0 \&\& at %/
 * MUTANT part-in-region near/rma/serve.c: \
 *   s/near_region_check\(entry, addr, req->total,/near_region_check(entry, \
 *   addr, req->len,/
 * MUTANT inline-too-long near/rma/serve.c: \
 *   s/if \(len > NEAR_RMA_BYTES\)\n\t\treturn NULL;//
 * MUTANT small-too-long near/rma/serve.c: \
 *   s/req->len - 1 >= NEAR_RMA_BYTES \|\| //;s/near_unlikely\(len > \
 *   NEAR_RMA_BYTES\)/0/
 * MUTANT small-loaded-twice near/rma/serve.c: \
 *   s/len = req.len;/len = hostile(slot->rma.len);/
 * MUTANT small-unaligned near/rma/serve.c: \
 *   s/ \|\|\n[\t ]*\(uintptr_t\)req.memory % sizeof\(value\)//
 * MUTANT region-gone near/rma/serve.c: \
 *   s/reply->err = near_rma_find_memory\(port, req, reply->addr, \
 *   &memory\);\n\tif \(reply->err\)/near_rma_find_memory(port, req, \
 *   reply->addr, \&memory);\n\tif (reply->err)/
 * MUTANT reply-kept near/rma/serve.c: s/near_list_remove\(&reply->link\);\n//
 */

#include "rings.h"

#include "near/rma/ops.h"

static struct near_port port;
static struct near_peer peer;
static struct near_rx_ring rx_ring;
static int replies;		/* number of allocated replies */
/* The region, and its memory. */
static struct near_region_entry entry;
static void *region;

static void *reply_get(struct near_pool *pool)
{
	if (any(bool))
		return NULL;
	replies++;
	return malloc(sizeof(struct near_rma_reply));
}

static void reply_put(struct near_pool *pool, void *reply)
{
	replies--;
	free(reply);
}


static bool near_op_compares(unsigned int op);	/* of atomic.c */

static void applied(unsigned int op, unsigned int type, void *target,
		    const void *operand, const void *compare, void *result,
		    size_t count)
{
	size_t size = near_type_size(type);

	check(size && (uintptr_t)target % size == 0);
	check(count && writable(target, count * size));
	check(op == NEAR_ATOMIC_READ || entry.access & NEAR_MAY_WRITE);
	check(!result || entry.access & NEAR_MAY_READ);
	check(!result || writable(result, count * size));
	check(op == NEAR_ATOMIC_READ || readable(operand, count * size));
	check(!near_op_compares(op) || readable(compare, count * size));
}

static bool near_rma_in_parts(const struct near_rma_reply *reply);

/*
 * True if the reply is valid after its request was handled: a short result, or
 * a read whose parts are within its length.
 */
static bool reply_valid(const struct near_rma_reply *reply)
{
	return near_rma_in_parts(reply) ? reply->offset <= reply->req.total :
					  reply->len <= NEAR_RMA_PART;
}

/* In place of near_rma_reply_all(), which the other CASE calls. */
static void answers_queued(const struct near_rma_peer *at)
{
	check(reply_valid(near_container(at->replies.prev,
					 struct near_rma_reply, link)));
}

static void reported(void *ctx, const struct near_rma_event *what)
{
}

static const struct near_region_entry *found(const struct near_table *table,
					     uint64_t key)
{
	return any(bool) ? NULL : &entry;
}

#define in_region(p) __CPROVER_same_object(p, region)
#define region_bytes(to, from, n) ({					\
	hostile_bytes(to, from, n);					\
	check(!in_region(to) || entry.access & NEAR_MAY_WRITE);	\
	check(!in_region(from) || entry.access & NEAR_MAY_READ);	\
})
#define region_add(p, value, order) ({					\
	check((uintptr_t)(p) % sizeof(*(p)) == 0);			\
	check(entry.access & NEAR_MAY_READ &&			\
	      entry.access & NEAR_MAY_WRITE);			\
	hostile_change(p, value, order);				\
})
#undef memcpy
#define memcpy region_bytes
#include "near/rma/serve.c"
#undef memcpy
#include "near/rma/atomic.c"

/* In place of functions of other layers and of link/ */

void near_rx_ring_broken(struct near_port *of, struct near_rx_ring *broken,
			 const char *what, uint64_t value)
{
}

void near_doorbell_ring(struct near_peer *to)
{
}

void near_port_wake(struct near_port *of)
{
}

int near_full(struct near_port *of, struct near_peer *to)
{
	return -EAGAIN;
}

struct near_slot *near_control_slot_other(struct near_port *of,
					  struct near_peer *to)
{
	return near_tx_slot_past(&to->tx);
}

struct near_rma_peer *near_rma_peer_new(struct near_peer *of)
{
	return NULL;
}

/*
 * In place of functions of prov/src/near/rma/delegate.c and
 * prov/src/near/rma/stage_serve.c, which have their own proofs: delegate.c and
 * stage.c of this directory
 */
bool near_deleg_no_reply(struct near_rx_ring *of, uint64_t word,
		       const struct near_rma_reply *reply)
{
	return any(bool);
}

int near_stage_request(struct near_port *of, struct near_rx_ring *from,
		       const struct near_slot *slot)
{
	return any(bool) ? 0 : -EAGAIN;
}

bool near_stage_reply(struct near_port *of, struct near_rma_peer *at,
		      struct near_rma_reply *reply)
{
	return any(bool);
}

static struct near_rma rma;
static struct near_rma_peer at;
static struct near_table table;

static void regions(void)
{
	size_t len = any(size_t);

	assume(len < 1u << 20);
	entry = any(struct near_region_entry);
	entry.len = len;
	region = malloc(len);
	entry.memory = (uintptr_t)region;
	rma.table = &table;
	rma.events = any(uint32_t);
	port.rma = &rma;
}

static void request(void)
{
	struct near_slot *slot = malloc(sizeof(*slot));
	uint64_t word = any(uint64_t);

	rx_any(&rx_ring.rx);
	rx_ring.rejected = any(bool);
	if (any(bool))
		peer.rma = NULL;
	if (near_rma_request(&port, &rx_ring, slot, word))
		check(rx_ring.rx.dnext - rx_ring.rx.dbase <= rx_ring.rx.dsize);
	check(rx_valid(&rx_ring.rx));
}

static void answers(void)
{
	struct near_rma_reply *reply = malloc(sizeof(*reply));

	*reply = any(struct near_rma_reply);
	assume(reply_valid(reply));
	replies = 1;
	near_list_append(&at.replies, &reply->link);
	at.replies_queued++;
	near_rma_reply_all(&port, &at);
	check(replies == !near_list_empty(&at.replies));
}

int main(void)
{
	rx_ring.peer = &peer;
	near_list_init(&at.replies);
	near_list_init(&at.queue);
	near_list_init(&port.onesided_work);
	near_tx_none(&peer.tx);
	at.peer = &peer;
	at.replies_queued = any(uint32_t);
	assume(at.replies_queued <= NEAR_RMA_REPLIES_MAX);
	at.rejected = any(uint64_t);
	peer.rma = &at;
	peer.draining = any(bool);
	ring_made();
	regions();
	switch (CASE) {
	case 0:
		/* without tx_any(), this port has no ring to the peer */
		if (any(bool))
			tx_any(&peer.tx);
		request();
		break;
	default:
		tx_any(&peer.tx);
		answers();
	}
	check(tx_valid(&peer.tx));
	return 0;
}
