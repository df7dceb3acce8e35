/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The receiver of a rendezvous message is killed before it has read the
 * message. The send neither completes nor fails. Endpoint, CQ and AV can be
 * closed, but fi_close of the domain returns -FI_EBUSY.
 */

#include <signal.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "repro.h"

#define ADDR_LEN 64
#define LEN (1 << 20)

/* The child: writes its address to "out", and makes progress until killed. */
static void receiver(pid_t parent, int out)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	char addr[ADDR_LEN] = "";
	size_t len = sizeof(addr);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	repro_open("tcp;ofi_rxm", 0, 1);
	repro_must(fi_getname(&repro_ep[0].ep->fid, addr, &len), "fi_getname");
	if (write(out, addr, sizeof(addr)) != sizeof(addr))
		_exit(0);
	for (;;)
		(void) repro_next(0, 1000, &entry, &err);
}

static void test(void)
{
	static char buf[LEN];
	struct repro_ep *e = &repro_ep[0];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	char addr[ADDR_LEN];
	pid_t parent = getpid(), pid;
	bool no_end;
	int fd[2], ret;

	if (pipe(fd))
		repro_must(-FI_EMFILE, "pipe");
	pid = fork();
	if (!pid)
		receiver(parent, fd[1]);
	repro_open("tcp;ofi_rxm", 0, 1);
	if (read(fd[0], addr, sizeof(addr)) != sizeof(addr))
		repro_must(-FI_EIO, "the receiver");
	if (fi_av_insert(e->av, addr, 1, &e->peer[0], 0, NULL) != 1)
		repro_must(-FI_EINVAL, "fi_av_insert");
	repro_send(0, 0, buf, sizeof(buf), 1);
	(void) repro_next(0, 500, &entry, &err);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	no_end = repro_next(0, 2000, &entry, &err) == REPRO_NONE;
	repro_must(fi_close(&e->ep->fid), "fi_close, endpoint");
	repro_must(fi_close(&e->cq->fid), "fi_close, CQ");
	repro_must(fi_close(&e->av->fid), "fi_close, AV");
	ret = fi_close(&repro_domain->fid);
	if (no_end || ret)
		repro_shown("the send has %s end; fi_close of the domain: %s",
			    no_end ? "no" : "an",
			    ret ? fi_strerror(-ret) : "success");
}

int main(void)
{
	return repro_run("tcp;ofi_rxm: receiver of a rendezvous message is "
			 "killed", test);
}
