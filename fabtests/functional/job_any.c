/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A member's receives from any source. Each sender's messages must match them
 * in the order of posting.
 *
 * Over efa a receive never ends if its remote sender fails in the middle of the
 * message (docs/upstream.md). So at close, one receive without an end is
 * permitted for each failed remote member.
 */

#include "job_member.h"

#define JOB_POSTED 6		/* more than the members that are killed */

static struct ft_ep *e;
static struct job *job;
static struct job_peer *peers;
static int self;
static struct job_act any[JOB_POSTED];
static unsigned int turn[JOB_POSTED];	/* place in the order of posting */
static unsigned int turns;	/* number of receives posted so far */
/* not posted again after an error: efa may report the error twice */
static bool failed[JOB_POSTED];

void job_any_open(struct ft_ep *ep, struct job *shared, int me,
		  struct job_peer *all)
{
	int i;

	e = ep;
	job = shared;
	self = me;
	peers = all;
	for (i = 0; i < JOB_POSTED; i++)
		ft_buf_alloc(e, &any[i].buf, JOB_LEN);
}

/* True if a receive posted before receive i has not ended. */
static bool job_any_waits(int i)
{
	int j;

	for (j = 0; j < JOB_POSTED; j++)
		if (any[j].busy && turn[j] < turn[i])
			return true;
	return false;
}

/*
 * True if receive i may be handled now. False if an earlier receive has not
 * ended, and the message in receive i is not the next one of its sender: the
 * earlier receive may have the next one.
 */
static bool job_any_ready(int i)
{
	const uint8_t *buf = any[i].buf.ptr;

	return !any[i].busy || !atomic_load(&any[i].op.done) ||
	       any[i].op.err || !job_any_waits(i) ||
	       job_seq(buf) == peers[job_from(buf)].got[JOB_ANY];
}

static void job_any_got(int i)
{
	struct job_peer *peer;

	job_got(&any[i], JOB_ANY);
	peer = &peers[job_from(any[i].buf.ptr)];
	FT_CHECK(turn[i] > peer->any_turn, "message %u of member %d is in the "
		 "receive that was posted before that of the previous message",
		 job_seq(any[i].buf.ptr), (int)(peer - peers));
	peer->any_turn = turn[i];
}

static void job_any_post(int i)
{
	turn[i] = ++turns;
	job_receive(self, &any[i], JOB_ANY);
}

void job_any_step(void)
{
	bool ok;
	int i;

	for (i = 0; i < JOB_POSTED; i++) {
		if (!job_any_ready(i))
			continue;
		if (job_ended(self, &any[i], &ok)) {
			if (ok)
				job_any_got(i);
			failed[i] = !ok && any[i].op.err != FI_ECONNRESET;
		}
		if (!any[i].busy && !failed[i])
			job_any_post(i);
	}
}

/* Returns the largest permitted number of receives without an end. */
static int job_any_endless(void)
{
	int p, count = 0;

	for (p = 0; p < job->count; p++)
		count += job->fate[p] != JOB_ALIVE &&
			 job->about[p].host != job->about[self].host;
	return ft_has_prefix(ft.opts.prov, "efa") ? count : 0;
}

void job_any_cancel(void)
{
	int i, ret, endless = 0;

	for (i = 0; i < JOB_POSTED; i++) {
		if (!any[i].busy)
			continue;
		ret = fi_cancel(&e->ep->fid, &any[i].op);
		if (ret == -FI_ENOENT)
			endless++;
		else
			ft_wait_err(e, &any[i].op, FI_ECANCELED);
	}
	FT_CHECK(endless <= job_any_endless(), "%d receives have no end, %d "
		 "may", endless, job_any_endless());
}

void job_any_close(void)
{
	int i;

	for (i = 0; i < JOB_POSTED; i++)
		if (any[i].buf.mr)
			fi_close(&any[i].buf.mr->fid);
}
