/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Kills members of a running job. Members exchange messages, received from any
 * or named sources, and execute RMA and atomics, all verified. In each round a
 * random member gets SIGKILL, and a new member joins. The seed (-x) chooses
 * members and moments.
 *
 * Within a second of CPU time, each survivor on the same host must have ended
 * all operations with the dead member: with success, or with FI_ECONNRESET and
 * an error entry that names the member. In the end no message is missing, and
 * no memory, file descriptor or file of a dead member is left.
 */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "job.h"

#define JOB_MOMENT_US 20000
#define JOB_SWEEPS 2 /* limit of endpoints to open until no file is left */

static struct job *job;
static struct ft_child child[JOB_MAX];
static int host_of[JOB_MAX];
static char registry[] = "/dev/shm/job_deaths.XXXXXX";

static bool job_here(int member)
{
	return host_of[member] == ft.opts.rank;
}

static void job_fork(int member, int host)
{
	host_of[member] = host;
	if (!job_here(member))
		return;
	ft_fork(&child[member]);
	if (child[member].pid)
		return;
	ft_rand_seed(100 + member);
	job_member(job, member, host);
}

/*
 * Fails the test if a member that was not killed has exited before it has
 * closed.
 */
static void job_check(void)
{
	siginfo_t end;
	int m;

	for (m = 0; m < JOB_MAX; m++) {
		if (!child[m].pid || job->fate[m] == JOB_DEAD)
			continue;
		end.si_pid = 0;
		waitid(P_PID, child[m].pid, &end, WEXITED | WNOHANG | WNOWAIT);
		/* load after waitid(): members store JOB_CLOSED, then exit */
		FT_CHECK(!end.si_pid || job->entered[m] == JOB_CLOSED,
			 "member %d has ended, status %d", m, end.si_status);
	}
}

/* Waits until at[m] >= number for all living members m, on all hosts. */
static void job_wait(const atomic_int *at, int count, int number)
{
	int m;

	for (m = 0; m < count; m++) {
		while (job_here(m) && job->fate[m] == JOB_ALIVE &&
		       atomic_load(&at[m]) < number) {
			job_check();
			usleep(500);
		}
	}
	ft_barrier();
}

/*
 * Exchanges the descriptions of members from job->count on, up to count - 1,
 * and publishes them to all members.
 */
static void job_publish(int count)
{
	struct job_about all[FT_MAX_RANKS];
	int m;

	for (m = job->count; m < count; m++) {
		ft_allgather(&job->about[m], sizeof(*all), all);
		job->about[m] = all[host_of[m]];
	}
	atomic_store(&job->count, count);
	ft_barrier();
}

static void job_death(int round)
{
	int victim, next = job->count;
	unsigned int moment = ft_rand(JOB_MOMENT_US);

	do
		victim = ft_rand(next);
	while (job->fate[victim] != JOB_ALIVE);
	atomic_store(&job->fate[victim], JOB_DOOMED);
	ft_barrier();
	if (job_here(victim)) {
		usleep(moment);
		ft_end_child(&child[victim]);
	}
	ft_barrier();
	atomic_store(&job->fate[victim], JOB_DEAD);
	job_fork(next, host_of[victim]);
	job_wait(job->entered, next + 1, JOB_OPEN);
	job_publish(next + 1);
	atomic_store(&job->round, round + 1);
	job_wait(job->rounds, next + 1, round + 1);
}

/* Lets all members enter a step, and waits until they have. */
static void job_enter(enum job_step step)
{
	struct job_row all[FT_MAX_RANKS];
	int m;

	atomic_store(&job->step, step);
	job_wait(job->entered, job->count, step);
	for (m = 0; step == JOB_STOPPED && m < job->count; m++) {
		ft_allgather(&job->row[m], sizeof(*all), all);
		job->row[m] = all[host_of[m]];
	}
}

static void job_end(void)
{
	int m, status;

	for (m = 0; m < job->count; m++) {
		if (!job_here(m) || job->fate[m] == JOB_DEAD)
			continue;
		FT_CHECK(waitpid(child[m].pid, &status, 0) == child[m].pid &&
			 WIFEXITED(status) && !WEXITSTATUS(status),
			 "member %d has ended with status 0x%x", m, status);
	}
}

/*
 * Returns the number of entries in the registry. Makes their access times old,
 * so that the next endpoint that opens sweeps them.
 */
static int job_registered(void)
{
	const struct timespec times[2] = {
		{ .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT },
	};
	DIR *dir = opendir(registry);
	struct dirent *entry;
	int count = 0;

	FT_CHECK(dir, "%s: %s", registry, strerror(errno));
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		utimensat(dirfd(dir), entry->d_name, times, 0);
	}
	closedir(dir);
	return count;
}

/*
 * Opens endpoints in children until the registry is empty. An endpoint that
 * opens removes the records of dead processes.
 */
static void job_sweep(void)
{
	struct ft_child one;
	struct ft_ep e;
	int i;

	for (i = 0; job_registered(); i++) {
		FT_CHECK(i < JOB_SWEEPS, "a file is left in %s", registry);
		ft_fork(&one);
		if (!one.pid) {
			ft_open(&e, NULL);
			ft_close_fids(&e);
			_exit(0);
		}
		waitpid(one.pid, NULL, 0);
		ft_end_child(&one);
	}
	FT_CHECK(!rmdir(registry), "%s: %s", registry, strerror(errno));
}

static void job_run(void)
{
	int rounds = ft.opts.quick ? 2 : 4, i;

	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(job != MAP_FAILED, "mmap: %s", strerror(errno));
	FT_CHECK(mkdtemp(registry), "mkdtemp: %s", strerror(errno));
	setenv("FI_OFI_DUO_REGISTRY_DIR", registry, 1);
	ft.phase = "start";
	for (i = 0; i < JOB_MEMBERS; i++)
		job_fork(i, i % ft.opts.nranks);
	job_wait(job->entered, JOB_MEMBERS, JOB_OPEN);
	job_publish(JOB_MEMBERS);
	atomic_store(&job->round, 1);
	job_wait(job->rounds, JOB_MEMBERS, 1);
	ft.phase = "deaths";
	for (i = 1; i <= rounds; i++)
		job_death(i);
	ft.phase = "the end";
	job_enter(JOB_STOPPED);
	job_enter(JOB_CHECKED);
	job_enter(JOB_CLOSED);
	job_end();
	job_sweep();
}

const struct ft_spec ft_spec = {
	.name = "job_deaths", .nranks = 1, .min_ranks = 1, .run = job_run,
};
