/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks that processes can share memory and copy from each other's memory. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "info.h"

/* Inode numbers of the kernel's initial namespaces. */
#define INFO_INIT_PID_NS 4026531836ULL
#define INFO_INIT_USER_NS 4026531837ULL

static char info_word[] = "parent";

/* True if this process permits copies in spite of Yama, as ofi_duo does. */
static bool info_ptracer(void)
{
	return !info_is_off(getenv("FI_OFI_DUO_PTRACER"));
}

/*
 * Main function of the process from which another one copies. Writes a byte to
 * the pipe "ready", then waits until fi_duo_info kills it. If fi_duo_info ends
 * early, this process must end, too: either the kernel kills it, or, if
 * fi_duo_info had ended before prctl(), write() fails, because no process reads
 * the pipe.
 */
static void info_copy_source(int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (info_ptracer())
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	memcpy(info_word, "source", sizeof(info_word));
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/*
 * Copies info_word from the process "source". There info_word has the same
 * address as here, because fi_duo_info has forked both processes. Returns 0 or
 * an errno.
 */
static int info_copy_reader(pid_t source)
{
	char word[sizeof(info_word)] = "";
	struct iovec to = { word, sizeof(word) };
	struct iovec from = { info_word, sizeof(info_word) };

	if (process_vm_readv(source, &to, 1, &from, 1, 0) !=
	    (ssize_t) sizeof(word))
		return errno ? errno : EIO;
	return strcmp(word, "source") ? EIO : 0;
}

/* Copies between siblings, as ranks of a host are. Returns 0 or an errno. */
static int info_copy_try(void)
{
	int ready[2], status = 0, ret = EAGAIN;
	pid_t source, reader;
	char byte;

	if (pipe(ready))
		return errno;
	/*
	 * If the program that started fi_duo_info ignores SIGCHLD, fi_duo_info
	 * inherits this. Then waitpid() would return no exit status.
	 */
	signal(SIGCHLD, SIG_DFL);
	source = fork();
	if (!source) {
		close(ready[0]);
		info_copy_source(ready[1]);
	}
	close(ready[1]);
	if (source > 0 && read(ready[0], &byte, 1) == 1) {
		reader = fork();
		if (!reader)
			_exit(info_copy_reader(source));
		if (reader > 0 && waitpid(reader, &status, 0) == reader)
			ret = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	}
	close(ready[0]);
	if (source > 0) {
		kill(source, SIGKILL);
		waitpid(source, NULL, 0);
	}
	return ret;
}

void info_check_copy(void)
{
	long long scope = -1;
	int ret = info_copy_try();

	info_read_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
	if (!ret) {
		info_found("copy", INFO_OK, "process_vm_readv works between "
			   "two processes%s", scope > 0 ? ", in spite of "
			   "kernel.yama.ptrace_scope" : "");
		return;
	}
	info_found("copy", INFO_WARNING, "process_vm_readv between two "
		   "processes: %s; large messages are copied twice",
		   strerror(ret));
	if (scope == 1 && !info_ptracer())
		info_remedy("kernel.yama.ptrace_scope is 1: unset "
			    "FI_OFI_DUO_PTRACER, which is off");
	else if (scope > 1)
		info_remedy("kernel.yama.ptrace_scope is %lld: set it to 1 "
			    "(sysctl kernel.yama.ptrace_scope=1), or give "
			    "containers CAP_SYS_PTRACE", scope);
	else if (ret == ENOSYS)
		info_remedy("a seccomp profile or the kernel has no "
			    "process_vm_readv: use another profile (docker "
			    "--security-opt seccomp=...)");
	else
		info_remedy("a seccomp profile, user namespaces or a "
			    "security module forbid it: run all ranks in one "
			    "container, as one user that may read the program");
}

/* Reads the inode number of this process's namespace NAME. */
static bool info_namespace(const char *name, unsigned long long *number)
{
	char path[64], link[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return false;
	link[len] = '\0';
	return sscanf(strchr(link, '[') ? strchr(link, '[') : "", "[%llu]",
		      number) == 1;
}

void info_check_namespaces(void)
{
	unsigned long long pid, user;
	bool own_pid, own_user;

	if (!info_namespace("pid", &pid) || !info_namespace("user", &user)) {
		info_found("namespaces", INFO_WARNING, "no /proc/self/ns: local "
			   "processes cannot be identified, the core carries "
			   "all messages");
		info_remedy("mount /proc (mount -t proc proc /proc)");
		return;
	}
	own_pid = pid != INFO_INIT_PID_NS;
	own_user = user != INFO_INIT_USER_NS;
	if (!own_pid && !own_user) {
		info_found("namespaces", INFO_OK, "pid and user namespace are "
			   "the host's");
		return;
	}
	info_found("namespaces", INFO_NOTE, "%s%s%s namespace of its own, as "
		   "in a container: %s",
		   own_pid ? "pid" : "", own_pid && own_user ? " and " : "",
		   own_user ? "user" : "", info_local_is_shm() ?
		   "only ranks in the same one share memory" :
		   "ranks in others share memory if they have the same "
		   "/dev/shm and are the same user of the host, and copy long "
		   "messages twice");
	info_remedy("start all ranks of a host in one container, or with the "
		    "host's namespaces (docker --pid=host --ipc=host)");
}
