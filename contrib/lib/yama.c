/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Preloaded in tests: emulates Yama's ptrace_scope 1 between processes of one
 * user. A process may access another one's memory only if that one has called
 * prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY). The call is recorded as a file in
 * $YAMA_DIR, named by the process id.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

int prctl(int option, ...);

static void yama_path(char *path, size_t size, pid_t pid)
{
	const char *dir = getenv("YAMA_DIR");

	snprintf(path, size, "%s/%d", dir ? dir : "/nonexistent", (int) pid);
}

static bool yama_permits(pid_t pid)
{
	char path[PATH_MAX];

	yama_path(path, sizeof(path), pid);
	return pid == getpid() || !access(path, F_OK);
}

int prctl(int option, ...)
{
	static int (*real)(int option, ...);
	unsigned long arg[4];
	char path[PATH_MAX];
	va_list args;
	int i;

	va_start(args, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_PTRACER) {
		yama_path(path, sizeof(path), getpid());
		if (arg[0] == PR_SET_PTRACER_ANY)
			close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		return 0;
	}
	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "prctl");
	return real(option, arg[0], arg[1], arg[2], arg[3]);
}

static ssize_t yama_call(const char *name, pid_t pid, const struct iovec *local,
			 unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	ssize_t (*real)(pid_t pid, const struct iovec *local,
			unsigned long local_count, const struct iovec *remote,
			unsigned long remote_count, unsigned long flags);

	if (!yama_permits(pid)) {
		errno = EPERM;
		return -1;
	}
	*(void **) &real = dlsym(RTLD_NEXT, name);
	return real(pid, local, local_count, remote, remote_count, flags);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	return yama_call("process_vm_readv", pid, local, local_count, remote,
			 remote_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long local_count, const struct iovec *remote,
			  unsigned long remote_count, unsigned long flags)
{
	return yama_call("process_vm_writev", pid, local, local_count, remote,
			 remote_count, flags);
}
