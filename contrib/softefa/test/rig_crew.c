/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

void rig_crew_start(struct rig_crew *crew, int count,
		    void (*work)(const struct rig_target *target, int out))
{
	struct rig_target target;
	int i, in[2], out[2];

	for (i = 0; i < count; i++) {
		ck_assert(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
		crew[i].pid = fork();
		ck_assert_int_ge(crew[i].pid, 0);
		if (!crew[i].pid) {
			close(in[1]);
			if (read(in[0], &target, sizeof(target)) ==
			    sizeof(target)) {
				target.in = in[0];
				work(&target, out[1]);
			}
			_exit(0);
		}
		close(in[0]);
		close(out[1]);
		crew[i].in = out[0];
		crew[i].out = in[1];
	}
}

void rig_crew_call(struct rig_crew *crew, const struct rig_node *target)
{
	struct rig_target to = { .gid = target->gid,
				 .qpn = target->qp->qp_num };

	ck_assert_int_eq(write(crew->out, &to, sizeof(to)), sizeof(to));
}

int rig_crew_hear(struct rig_crew *crew, struct rig_node *node, uint32_t ms)
{
	struct pollfd pfd = { .fd = crew->in, .events = POLLIN };
	uint64_t end = rig_now_ms() + ms;
	uint8_t byte;

	do {
		if (poll(&pfd, 1, node ? 0 : 10) == 1)
			return read(crew->in, &byte, 1) == 1 ? byte : -1;
		if (node)
			rig_progress(node);
	} while (rig_now_ms() < end);
	return -1;
}

void rig_crew_end(struct rig_crew *crew, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		close(crew[i].in);
		close(crew[i].out);
		kill(crew[i].pid, SIGKILL);
		ck_assert_int_eq(waitpid(crew[i].pid, NULL, 0), crew[i].pid);
	}
}
