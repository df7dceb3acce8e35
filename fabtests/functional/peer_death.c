/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Forks peers, and kills each at another step. Within a second all pending
 * operations with the peer must end, with success or FI_ECONNRESET, and the
 * operations with the next peer must work. A stopped peer must not count as
 * failed. With the provider near, the operations include RMA and an atomic.
 *
 * With ofi_duo, messages to a process that runs the core alone must continue.
 * If FI_HOOK selects ofi_duo, every second peer uses the provider
 * "CORE;ofi_duo" instead of the core.
 *
 * FT_AWAY=1: each peer has its own pid namespace; FT_AWAY=users: also its own
 * user namespace.
 */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/child.h"
#include "common/ft.h"

#define FT_LARGE (1u << 20)
#define FT_STEPS 40
#define FT_LIMIT_NS 1000000000u	/* limit of this process's CPU time */
#define FT_STOP_MS 400
#define FT_PING 9		/* tags */
#define FT_PONG 10

enum {
	FT_SMALL_IN,
	FT_LARGE_IN,
	FT_LARGE_OUT,
	FT_WRITE,
	FT_READ,
	FT_FETCH,
	FT_OPS
};

/* A peer, as it describes itself to the test. */
struct ft_about {
	char name[FT_NAME_MAX];
	uint64_t key, base;
};

static struct ft_cfg cfg = { .caps = FI_DIRECTED_RECV };
static struct ft_ep e;
static struct ft_buf in, out;
static uint64_t number, fetched;
/*
 * operations with the current peer; never freed, because the core may use them
 * after the peer has failed
 */
static struct ft_op *op;
static int awaited;		/* number of operations that must end */
static fi_addr_t other;		/* fi_addr of the current peer */
static int steps_left, ended_well, ended_badly;
static int peers;		/* number of peers started */

/* The process on the core alone, and the messages to and from it. */
static struct {
	struct ft_child child;
	fi_addr_t addr;
	struct ft_op ping, pong;
	char buf[8];
	int rounds;
} far;

/* In the peer: counts a step, and ends by SIGKILL after the last. */
static void ft_step(void)
{
	if (steps_left--)
		return;
	kill(getpid(), SIGKILL);
	/* the signal has no effect in the first process of a namespace */
	_exit(FT_GONE);
}

static void ft_peer_post(fi_addr_t us)
{
	struct ft_xfer x = { .tagged = true, .tag = 1, .len = 8,
			     .buf = out.ptr, .desc = out.desc };

	FT_RETRY(&e, ft_tx_try(&e, FT_TX_INJECT, us, &x, &op[0]));
	ft_step();
	x.tag = 2;
	x.len = FT_LARGE;
	ft_op_reset(&op[1]);
	FT_OK(FT_RETRY(&e, ft_tx_try(&e, FT_TX_SEND, us, &x, &op[1])));
	ft_step();
	x.tag = 3;
	x.buf = in.ptr;
	x.desc = in.desc;
	x.addr = us;
	ft_rx(&e, FT_RX_RECV, &x, &op[2]);
	ft_step();
}

/* In the peer: fills in its description, and lets the test access "in". */
static void ft_peer_about(struct ft_about *about)
{
	struct fid_mr *mr;

	memcpy(about->name, e.self.name, sizeof(about->name));
	if (e.ops)
		return;
	FT_OK(fi_mr_reg(e.domain, in.ptr, FT_LARGE, FI_REMOTE_READ |
			FI_REMOTE_WRITE, 0, 17, 0, &mr, NULL));
	about->key = fi_mr_key(mr);
	about->base = e.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
		      (uintptr_t)in.ptr : 0;
}

/*
 * Main function of a peer. It polls once per step, so that it can exit between
 * any two polls of a large message.
 */
static void ft_peer(const struct ft_child *parent)
{
	struct ft_about about = { 0 };
	char name[FT_NAME_MAX];
	fi_addr_t us;

	op = calloc(FT_OPS, sizeof(*op));
	memcpy(name, e.self.name, sizeof(name));
	ft_step();
	ft_open(&e, &cfg);
	ft_buf_alloc(&e, &in, FT_LARGE);
	ft_buf_alloc(&e, &out, FT_LARGE);
	ft_peer_about(&about);
	ft_tell(parent->to, &about, sizeof(about));
	if (e.ops && !ft_hear(parent->from, &us, sizeof(us)))
		_exit(FT_GONE);
	ft_step();
	FT_CHECK(fi_av_insert(e.av, name, 1, &us, 0, NULL) == 1, "insert");
	ft_step();
	ft_peer_post(us);
	for (;;) {
		ft_progress(&e);
		ft_step();
	}
}

/* In a peer: if FI_HOOK selects ofi_duo, uses the provider "CORE;ofi_duo". */
static void ft_peer_by_name(void)
{
	static char prov[64];

	if (!ft_wraps() || strstr(ft.opts.prov, ";ofi_duo"))
		return;
	snprintf(prov, sizeof(prov), "%s;ofi_duo", ft.opts.prov);
	ft.opts.prov = prov;
}

/* Starts a peer that ends after this number of steps; -1: never. */
static void ft_start(struct ft_child *peer, int steps)
{
	peers++;
	ft_fork(peer);
	if (peer->pid)
		return;
	if (getenv("FT_AWAY"))
		ft_move_away(!strcmp(getenv("FT_AWAY"), "users"));
	steps_left = steps < 0 ? 1 << 30 : steps;
	if (peers % 2)
		ft_peer_by_name();
	ft_peer(peer);
}

/* Main function of the process on the core alone: answers each message. */
static void ft_far_main(const struct ft_child *parent)
{
	const struct ft_cfg plain = { .plain = true };
	struct ft_xfer x = { .tagged = true, .buf = far.buf,
			     .len = sizeof(far.buf), .addr = FI_ADDR_UNSPEC };
	char name[FT_NAME_MAX];
	fi_addr_t us;

	unsetenv("FI_HOOK");	/* libfabric reads it at the first call */
	/*
	 * Use an IP address that no killed process had. If this process got the
	 * address and port of a killed process, the test could find the record
	 * of the killed process, and the test's first send to this process
	 * could fail: fi_duo(7), peer failure.
	 */
	if (ft_has_prefix(ft.opts.prov, "tcp") && !ft.opts.src)
		ft.opts.src = "127.0.0.2";
	ft_open(&e, &plain);
	ft_tell(parent->to, e.self.name, FT_NAME_MAX);
	ft_hear(parent->from, name, sizeof(name));
	FT_CHECK(fi_av_insert(e.av, name, 1, &us, 0, NULL) == 1, "insert");
	for (;;) {
		x.tag = FT_PING;
		ft_op_reset(&far.ping);
		FT_OK(FT_RETRY(&e, ft_rx_try(&e, FT_RX_RECV, &x, &far.ping)));
		ft_wait(&e, &far.ping);
		x.tag = FT_PONG;
		ft_op_reset(&far.pong);
		FT_OK(FT_RETRY(&e, ft_tx_try(&e, FT_TX_SEND, us, &x,
					     &far.pong)));
		ft_wait(&e, &far.pong);
	}
}

static void ft_far_start(void)
{
	ft_fork(&far.child);
	if (!far.child.pid)
		ft_far_main(&far.child);
	atomic_store(&far.ping.done, 1);
	atomic_store(&far.pong.done, 1);
}

static void ft_far_meet(void)
{
	char name[FT_NAME_MAX];

	FT_CHECK(ft_hear(far.child.from, name, sizeof(name)),
		 "the process with the core alone has exited");
	FT_CHECK(fi_av_insert(e.av, name, 1, &far.addr, 0, NULL) == 1,
		 "insert");
	ft_tell(far.child.to, e.self.name, FT_NAME_MAX);
}

/* Sends the next message over the core when the last one was answered. */
static void ft_far_go_on(void)
{
	struct ft_xfer x = { .tagged = true, .tag = FT_PONG, .buf = far.buf,
			     .len = sizeof(far.buf), .addr = far.addr };

	if (!far.child.pid || !atomic_load(&far.pong.done) ||
	    !atomic_load(&far.ping.done))
		return;
	FT_CHECK(!far.ping.err && !far.pong.err, "over the core: %d, %d",
		 far.ping.err, far.pong.err);
	far.rounds++;
	ft_op_reset(&far.pong);
	FT_OK(FT_RETRY(&e, ft_rx_try(&e, FT_RX_RECV, &x, &far.pong)));
	x.tag = FT_PING;
	ft_op_reset(&far.ping);
	FT_OK(FT_RETRY(&e, ft_tx_try(&e, FT_TX_SEND, far.addr, &x,
				     &far.ping)));
}

/* Checks that a message over the core is still answered. */
static void ft_far_goes_on(void)
{
	int until = far.rounds + 1;

	while (far.child.pid && far.rounds < until) {
		ft_far_go_on();
		if (!ft_progress(&e))
			sched_yield();
	}
}

/*
 * Handles the result of a post. If the post was rejected because the peer has
 * failed, records this as the end of op[which].
 */
static void ft_try(int which, ssize_t ret)
{
	if (!ret)
		return;
	FT_CHECK(ret == -FI_ECONNRESET || ret == -FI_EHOSTUNREACH,
		 "operation %d: %zd (%s)", which, ret, fi_strerror((int)-ret));
	op[which].err = FI_ECONNRESET;
	op[which].err_src = other;
	atomic_store(&op[which].done, 1);
}

static bool ft_over_core(fi_addr_t peer)
{
	enum fi_duo_reason reason;
	enum fi_duo_path path = FI_DUO_LOCAL;

	if (e.ops)
		FT_OK(e.ops->path(e.ep, peer, &path, &reason));
	return path == FI_DUO_CORE;
}

/*
 * Posts a send to a peer that may have failed. In that case the core ends or
 * rejects the send, except tcp, which tries to connect forever.
 */
static void ft_post_send(fi_addr_t peer)
{
	struct ft_xfer x = { .tagged = true, .tag = 3, .len = FT_LARGE,
			     .buf = out.ptr, .desc = out.desc };
	ssize_t ret;

	do {
		ret = ft_tx_try(&e, FT_TX_SEND, peer, &x, &op[FT_LARGE_OUT]);
		if (ft_over_core(peer)) {
			awaited = FT_LARGE_OUT;
			return;
		}
		if (ret == -FI_EAGAIN)
			ft_progress(&e);
	} while (ret == -FI_EAGAIN);
	ft_try(FT_LARGE_OUT, ret);
}

static void ft_post(fi_addr_t peer)
{
	struct ft_xfer x = { .tagged = true, .addr = peer, .tag = 1,
			     .len = 8, .buf = in.ptr, .desc = in.desc };

	op = calloc(FT_OPS, sizeof(*op));
	FT_CHECK(op, "no memory");
	awaited = e.ops ? FT_WRITE : FT_OPS;
	ft_try(FT_SMALL_IN, ft_rx_try(&e, FT_RX_RECV, &x, &op[FT_SMALL_IN]));
	x.tag = 2;
	x.len = FT_LARGE;
	ft_try(FT_LARGE_IN, ft_rx_try(&e, FT_RX_RECV, &x, &op[FT_LARGE_IN]));
	ft_post_send(peer);
}

static void ft_post_onesided(fi_addr_t peer, const struct ft_about *about)
{
	/*
	 * Post the atomic first: only the target can execute it, and the write
	 * and the read wait for its end. So all three are pending for a while.
	 */
	ft_try(FT_FETCH, FT_RETRY(&e, fi_fetch_atomic(
		e.ep, &number, 1, NULL, &fetched, NULL, peer, about->base,
		about->key, FI_UINT64, FI_SUM, &op[FT_FETCH])));
	ft_try(FT_WRITE, FT_RETRY(&e, fi_write(
		e.ep, out.ptr, FT_LARGE, out.desc, peer, about->base,
		about->key, &op[FT_WRITE])));
	ft_try(FT_READ, FT_RETRY(&e, fi_read(
		e.ep, in.ptr, FT_LARGE, in.desc, peer, about->base,
		about->key, &op[FT_READ])));
}

static bool ft_all_done(void)
{
	int i;

	for (i = 0; i < awaited; i++)
		if (!atomic_load(&op[i].done))
			return false;
	return true;
}

static uint64_t ft_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Waits for all operations, at most a second after the peer's exit. */
static void ft_until_done(pid_t pid, int steps)
{
	siginfo_t end = { 0 };
	uint64_t dead = 0;

	while (!ft_all_done()) {
		ft_progress(&e);
		ft_far_go_on();
		if (!dead && !waitid(P_PID, pid, &end,
				     WEXITED | WNOHANG | WNOWAIT) && end.si_pid)
			dead = ft_cpu_ns();
		FT_CHECK(!dead || ft_cpu_ns() - dead < FT_LIMIT_NS, "a second "
			 "after a peer's end at step %d: %d %d %d %d %d %d",
			 steps, op[0].done, op[1].done, op[2].done,
			 op[3].done, op[4].done, op[5].done);
		sched_yield();
	}
}

static void ft_count(int steps)
{
	int i;

	for (i = 0; i < awaited; i++) {
		FT_CHECK(!op[i].err || op[i].err == FI_ECONNRESET,
			 "operation %d: %d (%s)", i, op[i].err,
			 fi_strerror(op[i].err));
		FT_CHECK(steps >= 0 || !op[i].err, "operation %d with a peer "
			 "that lives: %s", i, fi_strerror(op[i].err));
		FT_CHECK(!op[i].err || FI_MAJOR_VERSION < 2 ||
			 op[i].err_src == other, "the error of operation %d "
			 "names %lu, not the peer %lu", i,
			 (unsigned long)op[i].err_src, (unsigned long)other);
		ended_well += !op[i].err;
		ended_badly += !!op[i].err;
	}
}

/* Stops the peer for a while: no operation may fail. */
static void ft_stop(pid_t pid)
{
	int i;

	kill(-pid, SIGSTOP);
	ft_progress_for(&e, FT_STOP_MS);
	for (i = 0; i < awaited; i++)
		FT_CHECK(!op[i].err, "operation %d with a peer that was "
			 "stopped: %s", i, fi_strerror(op[i].err));
	kill(-pid, SIGCONT);
}

/* Checks that the peer is local, and lets the waiting peer continue. */
static void ft_meet(const struct ft_child *peer, fi_addr_t addr)
{
	if (!e.ops)
		return;
	FT_CHECK(!ft_over_core(addr), "the peer is not local");
	ft_tell(peer->to, &addr, sizeof(addr));
}

static void ft_one_peer(int steps, bool stop)
{
	struct ft_about about;
	struct ft_child peer;
	fi_addr_t addr;

	ft_start(&peer, steps);
	if (ft_hear(peer.from, &about, sizeof(about))) {
		FT_CHECK(fi_av_insert(e.av, about.name, 1, &addr, 0, NULL) == 1,
			 "insert");
		other = addr;
		ft_meet(&peer, addr);
		ft_post(addr);
		if (!e.ops)
			ft_post_onesided(addr, &about);
		if (stop)
			ft_stop(peer.pid);
		ft_until_done(peer.pid, steps);
		ft_count(steps);
		FT_OK(fi_av_remove(e.av, &addr, 1, 0));
	}
	ft_end_child(&peer);
	ft_far_goes_on();
}

static void ft_check_told(void)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");
	bool near = ft_has_prefix(ft.opts.prov, "near") ||
		    (e.ops && !(peer && !strcmp(peer, "shm")));

	if (!near)
		ft_skip("only near reports peer failures");
}

static void ft_run(void)
{
	int steps;

	/*
	 * Without this setting efa, in the process that runs the core alone,
	 * would expect messages over efa's own shared memory.
	 */
	setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 1);
	signal(SIGPIPE, SIG_IGN);
	if (ft_wraps())
		ft_far_start();
	else
		cfg.caps |= FI_RMA | FI_ATOMIC;
	ft_open(&e, &cfg);
	ft_check_told();
	ft_buf_alloc(&e, &in, FT_LARGE);
	ft_buf_alloc(&e, &out, FT_LARGE);
	if (far.child.pid)
		ft_far_meet();
	else /* uses up fi_addr 0, which error entries without source have */
		ft_exchange(&e);
	ft.phase = "peers that die";
	/* steps are slow on a busy host: kill at every 2nd or 4th step only */
	for (steps = 0; steps < FT_STEPS; steps += ft.opts.quick ? 4 : 2)
		ft_one_peer(steps, false);
	FT_CHECK(ended_well && ended_badly, "%d operations ended well, %d "
		 "badly: no peer failed in between", ended_well, ended_badly);
	ft.phase = "one that lives";
	ft_one_peer(-1, false);
	ft.phase = "one that is stopped";
	ft_one_peer(-1, true);
	if (far.child.pid)
		ft_end_child(&far.child);
	ft_buf_free(&in);
	ft_buf_free(&out);
	ft_close_fids(&e);
}

const struct ft_spec ft_spec = {
	.name = "peer_death", .nranks = 1, .min_ranks = 1, .run = ft_run,
};
