/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

#include "repro.h"

#define REPRO_LIMIT 20	/* time limit, s */
#define REPRO_ADDR 256
#define REPRO_SHOWN 90	/* exit status of the child: the defect occurred */
#define REPRO_CANNOT 91

struct fi_info *repro_info;
struct fid_domain *repro_domain;
struct repro_ep repro_ep[REPRO_EPS];

/* the child's stdout. Its stderr, with libfabric's backtraces, is discarded. */
static FILE *repro_out;

void repro_must(ssize_t ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(repro_out, "%s: %s", what, fi_strerror((int) -ret));
	fflush(repro_out);
	_exit(REPRO_CANNOT);
}

void repro_open_domain(const char *prov, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fid_fabric *fabric;
	const char *node = strstr(prov, "shm") || strstr(prov, "efa") ? NULL :
							"127.0.0.1";

	hints->fabric_attr->prov_name = strdup(prov);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
			FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	repro_must(fi_getinfo(FI_VERSION(1, 17), node, NULL,
			      node ? FI_SOURCE : 0, hints, &repro_info), prov);
	repro_must(fi_fabric(repro_info->fabric_attr, &fabric, NULL),
		   "fi_fabric");
	repro_must(fi_domain(fabric, repro_info, &repro_domain, NULL),
		   "fi_domain");
}

void repro_open_ep(int i)
{
	struct repro_ep *e = &repro_ep[i];
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	repro_must(fi_endpoint(repro_domain, repro_info, &e->ep, NULL),
		   "fi_endpoint");
	repro_must(fi_cq_open(repro_domain, &cq_attr, &e->cq, NULL),
		   "fi_cq_open");
	repro_must(fi_av_open(repro_domain, &av_attr, &e->av, NULL),
		   "fi_av_open");
	repro_must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV),
		   "fi_ep_bind, CQ");
	repro_must(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind, AV");
}

void repro_enable(int i)
{
	repro_must(fi_enable(repro_ep[i].ep), "fi_enable");
}

void repro_introduce(int eps)
{
	char addr[REPRO_ADDR];
	int i, j;

	for (i = 0; i < eps; i++) {
		size_t len = sizeof(addr);

		repro_must(fi_getname(&repro_ep[i].ep->fid, addr, &len),
			   "fi_getname");
		for (j = 0; j < eps; j++) {
			if (fi_av_insert(repro_ep[j].av, addr, 1,
					 &repro_ep[j].peer[i], 0, NULL) != 1)
				repro_must(-FI_EINVAL, "fi_av_insert");
		}
	}
}

void repro_open(const char *prov, uint64_t caps, int eps)
{
	int i;

	repro_open_domain(prov, caps);
	for (i = 0; i < eps; i++) {
		repro_open_ep(i);
		repro_enable(i);
	}
	repro_introduce(eps);
}

static double repro_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

enum repro_result repro_next(int i, int ms, struct fi_cq_tagged_entry *entry,
			     struct fi_cq_err_entry *err)
{
	double end = repro_now() + ms;
	ssize_t ret;
	int j;

	memset(err, 0, sizeof(*err));
	do {
		for (j = 0; j < REPRO_EPS; j++) {
			if (j != i && repro_ep[j].cq)
				fi_cq_read(repro_ep[j].cq, NULL, 0);
		}
		ret = fi_cq_read(repro_ep[i].cq, entry, 1);
		if (ret == 1)
			return REPRO_DONE;
		if (ret == -FI_EAVAIL) {
			repro_must(fi_cq_readerr(repro_ep[i].cq, err, 0),
				   "fi_cq_readerr");
			return REPRO_ERROR;
		}
	} while (repro_now() < end);
	return REPRO_NONE;
}

void repro_send(int from, int to, const void *buf, size_t len, uint64_t tag)
{
	struct repro_ep *e = &repro_ep[from];
	ssize_t ret;
	int i;

	do {
		ret = tag ? fi_tsend(e->ep, buf, len, NULL, e->peer[to], tag,
				     NULL) :
			    fi_send(e->ep, buf, len, NULL, e->peer[to], NULL);
		for (i = 0; i < REPRO_EPS; i++) {
			if (repro_ep[i].cq)
				fi_cq_read(repro_ep[i].cq, NULL, 0);
		}
	} while (ret == -FI_EAGAIN);
	repro_must(ret, "fi_send");
}

void repro_truncate(const char *prov, const struct repro_size *size)
{
	static char sent[REPRO_LARGE], room[REPRO_LARGE];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;

	repro_open(prov, 0, 2);
	if (size->unexpected) {
		repro_send(1, 0, sent, size->sent, 0);
		(void) repro_next(0, 100, &entry, &err);
	}
	repro_must(fi_recv(repro_ep[0].ep, room, size->room, NULL,
			   FI_ADDR_UNSPEC, &context), "fi_recv");
	if (!size->unexpected)
		repro_send(1, 0, sent, size->sent, 0);
}

void repro_shown(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(repro_out, format, args);
	va_end(args);
	fflush(repro_out);
	_exit(REPRO_SHOWN);
}

static void repro_child(int fd, void (*test)(void))
{
	signal(SIGALRM, SIG_DFL);
	alarm(REPRO_LIMIT);
	repro_out = fdopen(fd, "w");
	/* psm3 writes a file at each crash: in /proc, it cannot */
	if (!repro_out || !freopen("/dev/null", "w", stderr) || chdir("/proc"))
		_exit(REPRO_CANNOT);
	test();
	_exit(0);
}

/* Removes regions of shm that the child has left. */
static void repro_sweep(pid_t child)
{
	char pattern[64];
	glob_t found;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/dev/shm/%d:*", (int) child);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
}

static int repro_verdict(int status, const char *words)
{
	if (WIFSIGNALED(status)) {
		printf("shown: %s\n", WTERMSIG(status) == SIGALRM ?
		       "it hangs" : strsignal(WTERMSIG(status)));
		return 1;
	}
	switch (WEXITSTATUS(status)) {
	case 0:
		printf("not shown\n");
		return 0;
	case REPRO_SHOWN:
		printf("shown: %s\n", words);
		return 1;
	case REPRO_CANNOT:
		printf("cannot be tried: %s\n", words);
		return 77;
	default:	/* exit of a provider's signal handler */
		printf("shown: the process exits with status %d\n",
		       WEXITSTATUS(status));
		return 1;
	}
}

int repro_run(const char *name, void (*test)(void))
{
	uint32_t version = fi_version();
	char words[256] = "";
	int status, fd[2];
	ssize_t len;
	pid_t child;

	printf("libfabric %u.%u: %s: ", FI_MAJOR(version), FI_MINOR(version),
	       name);
	fflush(stdout);
	if (pipe(fd))
		return 2;
	child = fork();
	if (!child)
		repro_child(fd[1], test);
	close(fd[1]);
	len = read(fd[0], words, sizeof(words) - 1);
	words[len > 0 ? len : 0] = '\0';
	close(fd[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	repro_sweep(child);
	return repro_verdict(status, words);
}

const struct repro_size *repro_size;

int repro_run_sizes(const char *prov, const char *what,
		    const struct repro_size *sizes, size_t count,
		    void (*test)(void))
{
	char name[128];
	int status = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		repro_size = &sizes[i];
		snprintf(name, sizeof(name), "%s: %zu bytes into %zu, %s%s",
			 prov, repro_size->sent, repro_size->room,
			 repro_size->unexpected ? "unexpected" : "expected",
			 what);
		if (repro_run(name, test) == 1)
			status = 1;
	}
	return status;
}
