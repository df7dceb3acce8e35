/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short ways: who takes them, what closes them, and that what is not looked
 * at for each message is looked at all the same.
 */

#include <rdma/fi_tagged.h>

#include "base/params.h"
#include "link/port.h"
#include "near_fixture.h"
#include "peer/near/near_ep.h"

#define MANY 40		/* more than short reads take at once */

static struct slot slot, slots[MANY];

static struct duo_cq *cq_now(void)
{
	return duo_cq_of(fx.cq);
}

/* Short reads since the last long one. */
static uint32_t shorts(void)
{
	return cq_now()->short_given - cq_now()->short_left;
}

/* The next ones are. */
static void until_short(void)
{
	struct fi_cq_tagged_entry none;
	int i;

	for (i = 0; i < 2 * NEAR_TICK_POLLS && cq_now()->short_left < 4; i++)
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_ge(cq_now()->short_left, 4);
}

static void warm_up(void)
{
	near_setup_unlocked();
	post_recv(&slot, peer, TAG);
	rig_send("first");
	both_entry(&slot);
	until_short();
}

static void rig_send_of(size_t len, unsigned int flags)
{
	static const char text[200] = "sixty-four bytes";
	const struct near_msg msg = {
		.payload = text, .len = len, .tag = TAG, .flags = flags,
		.data = 7,
	};

	ck_assert_int_eq(near_send(rig.port, rig.us, &msg), 0);
}

/* Tagged and not, in a slot and in the data ring, with data and without. */
START_TEST(takes)
{
	unsigned int flags = _i & (NEAR_TAGGED | NEAR_DATA);
	size_t len = _i & 4 ? 64 : 8;
	struct fi_cq_tagged_entry entry = { 0 };
	uint32_t before = shorts();
	fi_addr_t src = 0;

	memset(&slot, 0, sizeof(slot));
	if (flags & NEAR_TAGGED)
		post_recv(&slot, peer, TAG);
	else
		ck_assert_int_eq(fi_recv(fx.ep, slot.buf, 64, NULL, peer,
					 &slot), 0);
	rig_send_of(len, flags);
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(shorts(), before + 1);
	ck_assert_uint_eq(src, peer);
	ck_assert_ptr_eq(entry.op_context, &slot);
	ck_assert_ptr_eq(entry.buf, slot.buf);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_uint_eq(entry.tag, flags & NEAR_TAGGED ? TAG : 0);
	ck_assert_uint_eq(entry.data, 7);
	ck_assert_uint_eq(entry.flags, FI_RECV |
			  (flags & NEAR_TAGGED ? FI_TAGGED : FI_MSG) |
			  (flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0));
	ck_assert_mem_eq(slot.buf, "sixty-four bytes", 8);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 2);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}
END_TEST

/* A large one, tagged and not; what is not known of is the long way's. */
START_TEST(reads_large)
{
	enum { LEN = 20000 };
	unsigned int flags = _i ? NEAR_TAGGED : 0;
	struct fi_cq_tagged_entry entry = { 0 };
	uint32_t before;
	fi_addr_t src = 0;

	memset(large, 's', LEN);
	memset(got, 0, LARGE);
	rig_reads(LEN);
	ck_assert_int_eq(fi_tinject(fx.ep, "ring", 4, peer, 0), 0);
	until_short();
	before = shorts();
	if (flags)
		ck_assert_int_eq(fi_trecv(fx.ep, got, LARGE, NULL, peer, TAG,
					  0, &slot), 0);
	else
		ck_assert_int_eq(fi_recv(fx.ep, got, LARGE, NULL, peer, &slot),
				 0);
	rig_send_len(flags, LEN);
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(shorts(), before + 1);
	ck_assert_uint_eq(src, peer);
	ck_assert_ptr_eq(entry.op_context, &slot);
	ck_assert_ptr_eq(entry.buf, got);
	ck_assert_uint_eq(entry.len, LEN);
	ck_assert_uint_eq(entry.flags, FI_RECV | (flags ? FI_TAGGED : FI_MSG));
	ck_assert_mem_eq(got, large, LEN);
	ck_assert_uint_eq(got[LEN], 0);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	ck_assert_uint_eq(fixture_ep()->near->port->rx_ops.chunks, 0);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.sent, 1);
	ck_assert_int_eq(fi_trecv(fx.ep, got, LARGE, NULL, peer, TAG, 0, &slot),
			 0);
	rig_send_large(NEAR_TAGGED);
	ck_assert_uint_eq(both_entry(&slot).len, LARGE);
	ck_assert_uint_eq(fixture_ep()->near->port->rx_ops.chunks, 1);
}
END_TEST

/* What is not plain is left to the long way, with nothing done. */
START_TEST(leaves_others)
{
	static char text[200];
	struct fi_cq_tagged_entry entry;

	/* too long for its buffer, and then in order behind an error */
	post_recv(&slot, peer, TAG);
	post_recv(&slots[0], peer, TAG);
	rig_send_of(65, NEAR_TAGGED);
	rig_send("next");
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), -FI_EAVAIL);
	both_error(&slot, FI_ETRUNC);
	both_entry(&slots[0]);
	/* for another receive than the first, from anybody, and nobody's */
	until_short();
	post_recv(&slots[1], peer, TAG + 1);
	post_recv(&slots[2], FI_ADDR_UNSPEC, TAG);
	rig_send("second");
	ck_assert_uint_eq(both_entry(&slots[2]).len, 6);
	rig_send("nobody's");
	poll_cq(2);
	ck_assert_uint_eq(stats_now().unexpected, 1);
	post_recv(&slots[3], peer, TAG);
	ck_assert_uint_eq(both_entry(&slots[3]).len, 8);
	/* several buffers */
	ck_assert_int_eq(fi_trecvv(fx.ep, (struct iovec[]) {
			{ text, 2 }, { text + 10, 20 } }, NULL, 2, peer, TAG, 0,
			&slots[4]), 0);
	until_short();
	rig_send("split");
	ck_assert_uint_eq(both_entry(&slots[4]).len, 5);
	ck_assert_str_eq(text, "sp");
	ck_assert_str_eq(text + 10, "lit");
}
END_TEST

/* A read has what all of them have sent, however much one sends. */
START_TEST(others_have_their_turn)
{
	struct fi_cq_tagged_entry entry[2 * MANY];
	struct near_port *port = fixture_ep()->near->port;
	const struct near_lane *lane = port->hot[0];
	uint64_t head = lane->rx.head;
	ssize_t ret;
	int i;

	for (i = 0; i < MANY; i++) {
		post_recv(&slots[i], peer, TAG);
		rig_send("many");
	}
	ret = fi_cq_read(fx.cq, entry, 20);
	ck_assert_int_eq(ret, 20);
	/* the rest of the lane was taken as well, by a whole poll */
	ck_assert_uint_eq(lane->rx.head, head + MANY);
	ck_assert_int_eq(fi_cq_read(fx.cq, entry + 20, MANY), MANY - 20);
	for (i = 0; i < MANY; i++)
		ck_assert_ptr_eq(entry[i].op_context, &slots[i]);
}
END_TEST

/* near's look at the clock, the core, and who yields: as without short reads. */
START_TEST(counts_polls)
{
	struct near_port *port = fixture_ep()->near->port;
	const uint32_t before = port->polls + shorts();
	const uint64_t core = cq_now()->core_polls;
	struct fi_cq_tagged_entry none;
	uint32_t i, most = 0;

	for (i = 0; i < 128; i++) {
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
		most = shorts() > most ? shorts() : most;
	}
	ck_assert_uint_eq(port->polls + shorts(), before + 128);
	ck_assert_uint_eq(cq_now()->core_polls - core,
			  128 / duo_params.core_interval);
	ck_assert_uint_eq(most, NEAR_TICK_POLLS - 1);
	/* who has waited for long polls the core each time */
	for (i = 0; i < 256; i++)
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_eq(shorts(), 0);
	ck_assert_uint_gt(cq_now()->core_polls - core, 100);
}
END_TEST

static struct fid_ep *another(struct fid_cq *cq)
{
	const struct fixture_attr attr = {
		.near = true, .threading = FI_THREAD_DOMAIN,
	};
	struct fi_info *info = fixture_info(&attr);
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	fi_freeinfo(info);
	return ep;
}

/* Two endpoints with one queue: a short read would look at one. */
START_TEST(needs_a_queue_of_its_own)
{
	struct duo_ep *ep = fixture_ep();
	struct fid_ep *other;

	ck_assert_ptr_eq(cq_now()->quick, ep);
	other = another(fx.cq);
	ck_assert_ptr_null(cq_now()->quick);
	ck_assert_ptr_nonnull(ep->quick);
	post_recv(&slot, peer, TAG);
	rig_send("long");
	both_entry(&slot);
	ck_assert_uint_eq(shorts(), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_ptr_eq(cq_now()->quick, ep);
}
END_TEST

/* Flags of receives that are changed later are kept to. */
START_TEST(follows_flags)
{
	struct duo_ep *ep = fixture_ep();

	ck_assert_uint_ne(ep->quick_rx[DUO_MSG], 0);
	ep->rx_op_flags[DUO_MSG] = FI_MULTI_RECV;
	duo_ep_quicken(ep);
	ck_assert_uint_eq(ep->quick_rx[DUO_MSG], 0);
	ck_assert_uint_ne(ep->quick_rx[DUO_TAGGED], 0);
	ep->rx_selective = true;
	duo_ep_quicken(ep);
	ck_assert_uint_eq(ep->quick_rx[DUO_TAGGED], 0);
}
END_TEST

/* Whoever else may be in the domain has to be kept out, or told. */
START_TEST(closed_with_a_lock)
{
	ck_assert(fixture_ep()->domain->lock.on);
	ck_assert_ptr_null(fixture_ep()->quick);
	ck_assert_ptr_null(cq_now()->quick);
	ck_assert_uint_eq(fixture_ep()->quick_rx[DUO_TAGGED], 0);
}
END_TEST

static void seen(struct duo_lock *lock)
{
	lock->watch = NULL;
}

START_TEST(closed_while_watched)
{
	struct duo_ep *ep = fixture_ep();

	ep->domain->lock.watch = seen;
	duo_ep_quicken(ep);
	ck_assert_ptr_null(ep->quick);
	ck_assert_ptr_null(cq_now()->quick);
	post_recv(&slot, peer, TAG);
	ck_assert_ptr_null(ep->domain->lock.watch);
	duo_ep_quicken(ep);
	ck_assert_ptr_eq(cq_now()->quick, ep);
	rig_send("seen");
	both_entry(&slot);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("short");
	TCase *tcase = unit_case(suite, "open", warm_up, near_teardown);

	tcase_add_loop_test(tcase, takes, 0, 8);
	tcase_add_loop_test(tcase, reads_large, 0, 2);
	tcase_add_test(tcase, leaves_others);
	tcase_add_test(tcase, others_have_their_turn);
	tcase_add_test(tcase, counts_polls);
	tcase_add_test(tcase, needs_a_queue_of_its_own);
	tcase_add_test(tcase, follows_flags);
	tcase_add_test(tcase, closed_while_watched);
	tcase = unit_case(suite, "closed", near_setup, near_teardown);
	tcase_add_test(tcase, closed_with_a_lock);
	return unit_run(suite);
}
