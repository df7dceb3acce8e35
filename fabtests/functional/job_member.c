/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A member of the job of job_deaths.c, and its operations with others. */

#include <sched.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "job_member.h"

/* limit of messages sent to a member minus those received from the member */
#define JOB_AHEAD 6
#define JOB_EACH 6 /* messages of each kind from each member, in a round */
/* writes, reads and additions at each member, in a round */
#define JOB_ONESIDED 2
/* CPU time of this process within which a failure must have its effects, ns */
#define JOB_LIMIT_NS 1000000000u

static struct job *job;
static int self, round_now, known;
static struct ft_ep e;
static struct job_peer peers[JOB_MAX];
static struct job_cell *cells;
static struct fid_mr *mr;
static bool stopping;

static bool job_local(int p)
{
	return job->about[p].host == job->about[self].host;
}

/*
 * Checks the error of an operation with member p. The operation may fail only
 * if the job has selected the member to be killed (JOB_DOOMED).
 */
static void job_check_error(int p, const struct ft_op *op)
{
	/* members close at different times: operations may fail now */
	if (job->step == JOB_CLOSED)
		return;
	FT_CHECK(job->fate[p] != JOB_ALIVE, "an operation with member %d, "
		 "which lives: %d (%s)", p, op->err, fi_strerror(op->err));
	if (!job_local(p))
		return;		/* the core selects the error */
	FT_CHECK(op->err == FI_ECONNRESET, "an operation with member %d, "
		 "which has failed: %d (%s)", p, op->err, fi_strerror(op->err));
	FT_CHECK(FI_MAJOR_VERSION < 2 || op->err_src == peers[p].addr,
		 "the error of an operation with member %d names %lu", p,
		 (unsigned long)op->err_src);
}

/*
 * Returns the other member of a failed operation: p, unless p is self. If p is
 * self, the operation is a receive from any source, and its sender has failed
 * midway. From libfabric 2.0 on, the error entry names the sender if the sender
 * is on this host. Otherwise this function returns any failed member that may
 * be the sender.
 */
static int job_other(int p, const struct ft_op *op)
{
	bool near = op->err == FI_ECONNRESET;
	int i;

	for (i = 0; p == self && i < known; i++)
		if (near && FI_MAJOR_VERSION >= 2 ?
			    peers[i].addr == op->err_src :
			    job_local(i) == near && job->fate[i] != JOB_ALIVE)
			return i;
	return p;
}

bool job_ended(int p, struct job_act *act, bool *ok)
{
	if (!act->busy || !atomic_load(&act->op.done))
		return false;
	*ok = !act->op.err;
	if (!*ok)
		job_check_error(job_other(p, &act->op), &act->op);
	act->busy = !*ok && !job_local(p);
	return !act->busy;
}

static void job_reset(int p, struct job_act *act)
{
	ft_op_reset(&act->op);
	act->op.repeats = p == self ? ft.opts.nranks > 1 : !job_local(p);
}

/* Handles the result of a call that starts an operation. True if started. */
static bool job_started(int p, struct job_act *act, ssize_t ret)
{
	act->busy = !ret;
	FT_CHECK(!ret || ret == -FI_EAGAIN || job->fate[p] != JOB_ALIVE,
		 "a call for member %d, which lives: %zd (%s)", p, ret,
		 fi_strerror((int)-ret));
	FT_CHECK(!ret || ret == -FI_EAGAIN || ret == -FI_ECONNRESET ||
		 !job_local(p), "a call for member %d, which has failed: "
		 "%zd (%s)", p, ret, fi_strerror((int)-ret));
	return !ret;
}

static void job_act_open(struct job_act *act)
{
	ft_buf_alloc(&e, &act->buf, JOB_LEN);
}

/* Closes the buffer's region. Pending operations may still use the buffer. */
static void job_act_close(struct job_act *act)
{
	if (act->buf.mr)
		fi_close(&act->buf.mr->fid);
}

static void job_acts(struct job_peer *peer, void (*call)(struct job_act *act))
{
	int i;

	call(&peer->in);
	for (i = 0; i < JOB_KINDS; i++)
		call(&peer->tx[i]);
	for (i = 0; i < JOB_VERBS; i++)
		call(&peer->verb[i]);
}

static struct ft_xfer job_xfer(const struct job_act *act, int kind,
			       fi_addr_t addr)
{
	return (struct ft_xfer) {
		.buf = act->buf.ptr, .len = JOB_LEN, .desc = act->buf.desc,
		.tag = kind + 1, .tagged = true, .addr = addr,
	};
}

void job_receive(int p, struct job_act *act, int kind)
{
	struct ft_xfer x = job_xfer(act, kind, kind == JOB_ANY ?
				    FI_ADDR_UNSPEC : peers[p].addr);

	job_reset(p, act);
	job_started(p, act, ft_rx_try(&e, FT_RX_RECV, &x, &act->op));
}

void job_got(const struct job_act *act, int kind)
{
	int from = job_verify(act->buf.ptr, act->op.len, self, kind);

	FT_CHECK(job_seq(act->buf.ptr) == peers[from].got[kind],
		 "message %u of member %d, kind %d, not %u",
		 job_seq(act->buf.ptr), from, kind, peers[from].got[kind]);
	peers[from].got[kind]++;
}

static void job_step_directed(int p)
{
	struct job_act *in = &peers[p].in;
	bool ok;

	if (job_ended(p, in, &ok) && ok)
		job_got(in, JOB_DIRECTED);
	if (!in->busy && job->fate[p] != JOB_DEAD)
		job_receive(p, in, JOB_DIRECTED);
}

static void job_step_send(int p, int kind)
{
	uint32_t *sent = &job->row[self].sent[p][kind];
	struct job_act *act = &peers[p].tx[kind];
	struct ft_xfer x = job_xfer(act, kind, 0);
	bool ok;

	job_ended(p, act, &ok);
	if (act->busy || stopping || job->fate[p] == JOB_DEAD ||
	    *sent >= peers[p].got[kind] + JOB_AHEAD)
		return;
	x.len = job_fill(act->buf.ptr, self, p, kind, *sent);
	job_reset(p, act);
	if (job_started(p, act, ft_tx_try(&e, FT_TX_SEND, peers[p].addr, &x,
					  &act->op)))
		(*sent)++;
}

/* Starts the next one-sided operation on this member's cell at p. */
static ssize_t job_verb(int p, struct job_act *act)
{
	static const uint64_t one = 1;
	struct job_peer *peer = &peers[p];
	const struct job_about *to = &job->about[p];
	uint64_t cell = to->base + self * sizeof(*cells);
	uint64_t data = cell + offsetof(struct job_cell, data);
	uint64_t *add = (uint64_t *)act->buf.ptr;

	switch (peer->at) {
	case JOB_WRITE:
		peer->seed = ft_rand(1 << 20);
		peer->len = job_len(self, JOB_ANY, peer->seed);
		ft_fill(act->buf.ptr, peer->len, peer->seed);
		return fi_write(e.ep, act->buf.ptr, peer->len, act->buf.desc,
				peer->addr, data, to->key, &act->op);
	case JOB_READ:
		return fi_read(e.ep, act->buf.ptr, peer->len, act->buf.desc,
			       peer->addr, data, to->key, &act->op);
	default:
		*add = one;
		return fi_fetch_atomic(e.ep, add, 1, act->buf.desc, add + 1,
				       act->buf.desc, peer->addr, cell,
				       to->key, FI_UINT64, FI_SUM, &act->op);
	}
}

/* Checks the result of a one-sided operation that has succeeded. */
static void job_verb_ended(int p, const struct job_act *act)
{
	const uint64_t *was = (const uint64_t *)act->buf.ptr + 1;
	struct job_peer *peer = &peers[p];

	if (peer->at == JOB_READ)
		ft_verify(act->buf.ptr, peer->len, peer->seed, "a read");
	if (peer->at == JOB_ADD) {
		FT_CHECK(*was == job->row[self].added[p], "member %d had "
			 "%lu additions, not %u", p, (unsigned long)*was,
			 job->row[self].added[p]);
		job->row[self].added[p]++;
		peer->onesided++;
	}
	peer->at = (peer->at + 1) % JOB_VERBS;
}

static void job_step_onesided(int p)
{
	struct job_act *act = &peers[p].verb[peers[p].at];
	bool ok;

	if (job_ended(p, act, &ok) && ok) {
		job_verb_ended(p, act);
		act = &peers[p].verb[peers[p].at];
	}
	if (act->busy || stopping || job->fate[p] == JOB_DEAD)
		return;
	job_reset(p, act);
	job_started(p, act, job_verb(p, act));
}

static bool job_busy(const struct job_peer *peer, bool receives)
{
	return peer->tx[0].busy || peer->tx[1].busy ||
	       peer->verb[peer->at].busy || (receives && peer->in.busy);
}

/*
 * Handles a local member that has failed: all operations with the member must
 * end within JOB_LIMIT_NS, and then a further send must fail.
 */
static void job_step_dead(int p)
{
	struct job_peer *peer = &peers[p];
	static struct job_act last;
	struct ft_xfer x = { .tagged = true, .tag = 9 };
	ssize_t ret;

	FT_CHECK(job_cpu_ns() - peer->dead_ns < JOB_LIMIT_NS, "a second after "
		 "the end of member %d: sends %d %d, receive %d, one-sided "
		 "operation %d (%d)", p, peer->tx[0].busy, peer->tx[1].busy,
		 peer->in.busy, peer->verb[peer->at].busy, peer->at);
	if (job_busy(peer, true))
		return;
	ret = ft_tx_try(&e, FT_TX_INJECT, peer->addr, &x, &last.op);
	FT_CHECK(!ret || ret == -FI_EAGAIN || ret == -FI_ECONNRESET,
		 "a send to member %d, which has failed: %zd", p, ret);
	/* if the send succeeds, near has not detected the failure yet */
	peer->over = ret == -FI_ECONNRESET;
}

static void job_step_peer(int p)
{
	struct job_peer *peer = &peers[p];
	int kind;

	if (peer->over)
		return;
	if (!peer->dead_ns && job->fate[p] == JOB_DEAD)
		peer->dead_ns = job_cpu_ns();
	for (kind = 0; kind < JOB_KINDS; kind++)
		job_step_send(p, kind);
	job_step_directed(p);
	job_step_onesided(p);
	if (peer->dead_ns && job_local(p))
		job_step_dead(p);
	else
		peer->over = peer->dead_ns;
}

static void job_meet(int p)
{
	enum fi_duo_reason reason;
	enum fi_duo_path path = FI_DUO_LOCAL;

	FT_CHECK(fi_av_insert(e.av, job->about[p].name, 1, &peers[p].addr, 0,
			      NULL) == 1, "insert");
	if (e.ops && job->fate[p] == JOB_ALIVE)
		FT_OK(e.ops->path(e.ep, peers[p].addr, &path, &reason));
	FT_CHECK(!job_local(p) || path == FI_DUO_LOCAL || p == self ||
		 job->fate[p] != JOB_ALIVE, "member %d is not local", p);
	peers[p].over = p == self || job->fate[p] == JOB_DEAD;
	job_acts(&peers[p], job_act_open);
}

/* True if p is doomed or over, or this round's operations with p have ended. */
static bool job_has_talked(int p)
{
	const struct job_peer *peer = &peers[p];

	if (job->fate[p] != JOB_ALIVE)
		return peer->over || job->fate[p] == JOB_DOOMED;
	return p == self ||
	       (peer->got[0] >= JOB_EACH + peer->old_got[0] &&
		peer->got[1] >= JOB_EACH + peer->old_got[1] &&
		peer->onesided >= JOB_ONESIDED + peer->old_onesided);
}

static void job_round(void)
{
	int now = atomic_load(&job->round), p;

	while (known < atomic_load(&job->count))
		job_meet(known++);
	for (p = 0; now != round_now && p < known; p++) {
		memcpy(peers[p].old_got, peers[p].got, sizeof(peers[p].got));
		peers[p].old_onesided = peers[p].onesided;
	}
	round_now = now;
	for (p = 0; p < known && job_has_talked(p); p++)
		;
	if (p == known && known && now)
		atomic_store(&job->rounds[self], now);
}

static void job_steps(void)
{
	int p;

	if (!ft_progress(&e))
		sched_yield();
	job_round();
	job_any_step();
	for (p = 0; p < known; p++)
		job_step_peer(p);
}

/*
 * Runs job_steps() until done() is true, enters the step, and runs job_steps()
 * until the keepers begin the next step.
 */
static void job_enter(enum job_step step, bool (*done)(void))
{
	while (!done || !done())
		job_steps();
	atomic_store(&job->entered[self], step);
	while (atomic_load(&job->step) <= (int)step)
		job_steps();
}

static bool job_has_stopped(void)
{
	int p;

	for (p = 0; p < known; p++)
		if (!peers[p].over && job_busy(&peers[p], false))
			return false;
	return true;
}

static bool job_has_all(void)
{
	int p, kind;

	for (p = 0; p < known; p++)
		for (kind = 0; kind < JOB_KINDS; kind++)
			if (!peers[p].over && peers[p].got[kind] !=
			    job->row[p].sent[self][kind])
				return false;
	return true;
}

static void job_check_cells(void)
{
	int p;

	for (p = 0; p < known; p++)
		FT_CHECK(peers[p].over || cells[p].count ==
			 job->row[p].added[self], "%lu additions of member %d, "
			 "not %u", (unsigned long)cells[p].count, p,
			 job->row[p].added[self]);
}

/* Returns the number of living members on this host. */
static int job_locals(void)
{
	int p, count = 0;

	for (p = 0; p < known; p++)
		count += job->fate[p] == JOB_ALIVE && job_local(p);
	return count;
}

static void job_open(int host)
{
	static const struct ft_cfg cfg = {
		.caps = FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC,
		/* without an EQ efa aborts when a remote peer fails */
		.eq = true,
	};
	struct job_about *about = &job->about[self];

	ft_open(&e, &cfg);
	cells = aligned_alloc(4096, JOB_MAX * sizeof(*cells));
	FT_CHECK(cells, "no memory");
	memset(cells, 0, JOB_MAX * sizeof(*cells));
	FT_OK(fi_mr_reg(e.domain, cells, JOB_MAX * sizeof(*cells),
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0, &mr,
			NULL));
	memcpy(about->name, e.self.name, sizeof(about->name));
	about->key = fi_mr_key(mr);
	about->base = e.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
		      (uintptr_t)cells : 0;
	about->host = host;
	job_any_open(&e, job, self, peers);
}

static void job_close(void)
{
	int i;

	fi_close(&mr->fid);
	job_any_close();
	for (i = 0; i < known; i++)
		job_acts(&peers[i], job_act_close);
	ft_close_fids(&e);
}

/*
 * True if all messages have arrived, and near has released the resources of
 * dead members. When sends to a dead member fail, near may need some more polls
 * to release the member's resources. The test fails if that takes JOB_LIMIT_NS.
 * Call before any member closes, because a close releases resources, too.
 */
static bool job_has_all_and_no_more(void)
{
	static uint64_t since;

	if (!job_has_all())
		return false;
	if (!since)
		since = job_cpu_ns();
	return job_is_clean(job_locals(), job_cpu_ns() - since > JOB_LIMIT_NS);
}

void job_member(struct job *shared, int me, int host)
{
	job = shared;
	self = me;
	ft.phase = "a member";
	ft.opts.rank = me;
	job_open(host);
	atomic_store(&job->entered[self], JOB_OPEN);
	while (atomic_load(&job->step) < JOB_STOPPED)
		job_steps();
	stopping = true;
	job_enter(JOB_STOPPED, job_has_stopped);
	job_enter(JOB_CHECKED, job_has_all_and_no_more);
	job_check_cells();
	job_any_cancel();
	job_close();
	atomic_store(&job->entered[self], JOB_CLOSED);
	exit(FT_PASS);
}
