/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * forbid CALL=ERRNO... COMMAND...: runs COMMAND, in which these system calls
 * fail with this errno (a number), as in a container with seccomp. Exit status:
 * COMMAND's; 77: seccomp is not possible here.
 */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const struct {
	const char *name;
	int nr;
} calls[] = {
	{ "membarrier", SYS_membarrier },
	{ "memfd_create", SYS_memfd_create },
	{ "mount", SYS_mount },
	{ "pidfd_open", SYS_pidfd_open },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "unshare", SYS_unshare },
};

static int call_number(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strlen(calls[i].name) == len &&
		    !memcmp(calls[i].name, name, len))
			return calls[i].nr;
	return -1;
}

/* Adds a filter for the rule CALL=ERRNO. Returns 0 or -1. */
static int forbid(const char *rule)
{
	const char *equals = strchr(rule, '=');
	int nr = call_number(rule, (size_t) (equals - rule));
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int) nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO |
			 (unsigned int) atoi(equals + 1)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	if (nr < 0) {
		fprintf(stderr, "forbid: no system call of %s\n", rule);
		return -1;
	}
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	int i;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 77;
	for (i = 1; i < argc && strchr(argv[i], '='); i++)
		if (forbid(argv[i]))
			return 77;
	if (i < argc)
		execvp(argv[i], argv + i);
	return 77;
}
