/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A sender is killed when a message has arrived in part. The receive neither
 * completes nor fails, even after failed sends to the peer, and fi_cancel does
 * not find it. Requires an EFA, or contrib/softefa/softefa.
 */

#include <signal.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "repro.h"

#define SENDERS 8
#define RECEIVES 8
#define LEN 60000	/* several packets */
#define ADDR_LEN 64

struct receive {
	struct fi_context2 context;
	bool posted;
};

static char buf[RECEIVES + 1][LEN];
static struct fid_mr *mr;
static struct receive receives[RECEIVES];

static void *desc(void)
{
	return fi_mr_desc(mr);
}

static void open_one(void)
{
	repro_open_domain("efa", 0);
	repro_open_ep(0);
	repro_enable(0);
	repro_must(fi_mr_reg(repro_domain, buf, sizeof(buf), FI_SEND | FI_RECV,
			     0, 1, 0, &mr, NULL), "fi_mr_reg");
}

static fi_addr_t insert(const char *addr)
{
	fi_addr_t peer;

	if (fi_av_insert(repro_ep[0].av, addr, 1, &peer, 0, NULL) != 1)
		repro_must(-FI_EINVAL, "fi_av_insert");
	return peer;
}

/* Sends to the address read from fd until this process is killed. */
static void sender(pid_t parent, int fd, int out)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	char addr[ADDR_LEN], own[ADDR_LEN] = "";
	size_t len = sizeof(own);
	fi_addr_t peer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	if (read(fd, addr, sizeof(addr)) != sizeof(addr))
		_exit(0);
	open_one();
	peer = insert(addr);
	repro_must(fi_getname(&repro_ep[0].ep->fid, own, &len), "fi_getname");
	if (write(out, own, sizeof(own)) != sizeof(own))
		_exit(0);
	for (;;) {
		if (fi_tsend(repro_ep[0].ep, buf[0], LEN, desc(), peer, 1,
			     NULL) == -FI_EAGAIN)
			(void) repro_next(0, 0, &entry, &err);
	}
}

static void post(void)
{
	int i;

	for (i = 0; i < RECEIVES; i++) {
		if (receives[i].posted)
			continue;
		repro_must(fi_trecv(repro_ep[0].ep, buf[i], LEN, desc(),
				    FI_ADDR_UNSPEC, 1, 0, &receives[i]),
			   "fi_trecv");
		receives[i].posted = true;
	}
}

/*
 * Reads completions and errors of receives until there are none for MS ms.
 * Returns their number. "again": when a receive has ended, posts it once more;
 * returns after three completions or errors.
 */
static int drain(int ms, bool again)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	enum repro_result result;
	struct receive *one;
	int count = 0;

	while ((result = repro_next(0, ms, &entry, &err)) != REPRO_NONE) {
		one = result == REPRO_DONE ? entry.op_context : err.op_context;
		if (one)
			one->posted = false;
		count++;
		if (again)
			post();
		if (again && count >= 3)
			break;
	}
	return count;
}

/* Returns the number of receives that neither complete nor fail. */
static int lost(fi_addr_t killed)
{
	int i, count = 0;

	(void) drain(300, false);
	(void) fi_tsend(repro_ep[0].ep, buf[RECEIVES], 1, desc(), killed, 2,
			NULL);
	(void) drain(1000, false);
	for (i = 0; i < RECEIVES; i++) {
		if (receives[i].posted)
			(void) fi_cancel(&repro_ep[0].ep->fid, &receives[i]);
	}
	(void) drain(300, false);
	for (i = 0; i < RECEIVES; i++)
		count += receives[i].posted;
	return count;
}

static void test(void)
{
	char own[ADDR_LEN] = "", addr[ADDR_LEN];
	int to[SENDERS][2], from[SENDERS][2], i, count;
	size_t len = sizeof(own);
	pid_t pid[SENDERS], parent = getpid();
	fi_addr_t peer;

	/* do not use the provider's shared memory */
	setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 1);
	/* before open_one(): a child cannot use the device of its parent */
	for (i = 0; i < SENDERS; i++) {
		if (pipe(to[i]) || pipe(from[i]))
			repro_must(-FI_EMFILE, "pipe");
		pid[i] = fork();
		if (!pid[i])
			sender(parent, to[i][0], from[i][1]);
	}
	open_one();
	repro_must(fi_getname(&repro_ep[0].ep->fid, own, &len), "fi_getname");
	for (i = 0; i < SENDERS; i++) {
		post();
		if (write(to[i][1], own, sizeof(own)) != sizeof(own) ||
		    read(from[i][0], addr, sizeof(addr)) != sizeof(addr))
			repro_must(-FI_EIO, "a sender");
		peer = insert(addr);
		(void) drain(5000, true);
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
		count = lost(peer);
		if (count)
			repro_shown("a receive has no end, after %d senders "
				    "were killed", i + 1);
	}
}

int main(void)
{
	return repro_run("efa: sender is killed in the middle of a message",
			 test);
}
