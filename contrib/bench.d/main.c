/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Options, ranks and barriers of duobench. */

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define BN_HOPS 5000

static const struct bn_test {
	const char *name;
	void (*run)(void);
	uint64_t caps;
} bn_tests[] = {
	{ "lat", bn_lat, 0 },
	{ "lat-any", bn_lat_any, 0 },
	{ "lat-msg", bn_lat_msg, 0 },
	{ "wild", bn_wild, 0 },
	{ "bw", bn_bw, 0 },
	{ "rate", bn_rate, 0 },
	{ "rate-any", bn_rate_any, 0 },
	{ "rate-pairs", bn_rate_pairs, 0 },
	{ "multi", bn_multi, FI_MULTI_RECV },
	{ "wake", bn_wake, 0 },
	{ "put", bn_rma_put, FI_RMA },
	{ "get", bn_rma_get, FI_RMA },
	{ "rma-still", bn_rma_still, FI_RMA },
	{ "rma-bw", bn_rma_bw, FI_RMA },
	{ "fadd", bn_rma_fadd, FI_RMA | FI_ATOMIC },
	{ "fan-in", bn_fan_in, 0 },
	{ "alltoall", bn_alltoall, 0 },
	{ "idle", bn_idle, 0 },
	{ "insn", bn_insn, 0 },
	{ "insn-any", bn_insn_any, 0 },
	{ "insn-large", bn_insn_large, 0 },
	{ "insn-put", bn_insn_put, FI_RMA },
	{ "insn-get", bn_insn_get, FI_RMA },
	{ "insn-fadd", bn_insn_fadd, FI_RMA | FI_ATOMIC },
	{ "mem", bn_mem, 0 },
	{ "start", bn_start, 0 },
	{ "posted", bn_curve_posted, 0 },
	{ "unexpected", bn_curve_unexpected, 0 },
	{ "av", bn_curve_av, 0 },
	{ "cq", bn_curve_cq, 0 },
};

_Thread_local struct bn bn = {
	.opts = { .nranks = 2, .budget_ms = 10, .max_size = 4 << 20,
		  .timeout = 30 },
};

void bn_fail(int status, const char *fmt, ...)
{
	int none = 0;
	va_list args;

	/* only the first failure of all ranks is printed */
	if (!bn.sh || atomic_compare_exchange_strong(&bn.sh->failed, &none,
						     status)) {
		printf("!%s ", status == BN_SKIP ? "skip" : "fail");
		va_start(args, fmt);
		vprintf(fmt, args);
		va_end(args);
		printf("\n");
		fflush(stdout);
	}
	_exit(status);
}

static void bn_barrier(bool progress, bool sleeps)
{
	struct bn_shared *sh = bn.sh;
	unsigned int spins = 0, generation = atomic_load(&sh->generation);

	if (atomic_fetch_add(&sh->arrived, 1) + 1 ==
	    (unsigned int) bn.opts.nranks) {
		atomic_store(&sh->arrived, 0);
		atomic_fetch_add(&sh->generation, 1);
		return;
	}
	while (atomic_load(&sh->generation) == generation) {
		if (atomic_load(&sh->failed))
			_exit(BN_FAIL);
		if (progress && bn.cq) {
			bn_poll();
			/* no system call: it would disturb the measurement */
			if (!bn.yield)
				continue;
		}
		if (++spins % 64)
			continue;
		/* if ranks share CPUs, a rank that does not poll sleeps */
		if (sleeps || (bn.yield && !progress))
			usleep(50);
		else
			sched_yield();
	}
}

void bn_sync(void)
{
	bn_barrier(true, false);
}

void bn_sync_still(void)
{
	bn_barrier(false, false);
}

void bn_sync_sleeping(void)
{
	bn_barrier(false, true);
}

long bn_agree(long value)
{
	if (!bn.rank)
		atomic_store(&bn.sh->value, value);
	bn_sync();
	value = atomic_load(&bn.sh->value);
	bn_sync();
	return value;
}

/*
 * Prints the time of a round trip of a cache line between ranks 0 and 1, ns. On
 * a virtual machine this time depends on the hardware that the CPUs of both
 * ranks share at the moment. Only measurements with similar round trips can be
 * compared. Prints nothing if ranks share CPUs, because the time would depend
 * on the scheduler.
 */
static void bn_hop(const char *name)
{
	atomic_uint *line = &bn.sh->hop;
	unsigned int i, me = bn.rank;
	uint64_t start;

	if (bn.yield)
		return;
	bn_sync_still();
	start = bn_now();
	for (i = me; me < 2 && bn.opts.nranks > 1 && i < 2 * BN_HOPS; i += 2) {
		while (atomic_load_explicit(line, memory_order_acquire) != i)
			;
		atomic_store_explicit(line, i + 1, memory_order_release);
	}
	if (!me && i > 1)
		bn_print((bn_now() - start) / (double) BN_HOPS, "%s", name);
	bn_sync_still();
	atomic_store(line, 0);
	bn_sync_still();
}

static void bn_run_tests(void)
{
	char *rest = bn.opts.tests, *name;
	size_t i;

	while ((name = strsep(&rest, ","))) {
		for (i = 0; i < BN_COUNT(bn_tests); i++)
			if (!strcmp(name, bn_tests[i].name))
				break;
		if (i == BN_COUNT(bn_tests))
			BN_DIE("no test named %s", name);
		bn_sync();
		bn_tests[i].run();
	}
	bn_sync();
}

/*
 * Waits until the sends of near, the local transport of ofi_duo, contain no
 * memory fence. When a process with threads opens its first endpoint, near
 * begins to register the process for membarrier(2). This takes up to 50 ms, and
 * until then each send executes a fence.
 */
static void bn_threads_settle(void)
{
	const struct timespec enough = { .tv_nsec = 200000000 };

	nanosleep(&enough, NULL);
}

static void bn_rank_main(int rank)
{
	bn.rank = rank;
	bn.yield = bn_pin(rank) < bn.opts.nranks;
	bn_open();
	if (bn.opts.processes)
		bn_threads_settle();
	if (bn.opts.fifo && !bn.yield)
		bn_fifo();
	bn_hop("hop.before");
	bn_run_tests();
	bn_hop("hop.after");
	bn_check_path();
	bn_sync();
	bn_close();
}

struct bn_thread {
	pthread_t id;
	int rank;
	const struct bn *process;	/* bn of the main thread, with domain */
};

static void *bn_thread_main(void *arg)
{
	const struct bn_thread *thread = arg;

	bn = *thread->process;
	bn_rank_main(thread->rank);
	return NULL;
}

/* Runs `count` ranks, from the rank `first` on, in threads of this process. */
static void bn_threads_run(int first, int count)
{
	struct bn_thread thread[BN_MAX_RANKS];
	int i;

	bn_open_domain();
	for (i = 0; i < count; i++) {
		thread[i].rank = first + i;
		thread[i].process = &bn;
		if (pthread_create(&thread[i].id, NULL, bn_thread_main,
				   &thread[i]))
			BN_DIE("pthread_create");
	}
	for (i = 0; i < count; i++)
		pthread_join(thread[i].id, NULL);
}

static int bn_process_main(int number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(bn.opts.timeout);
	if (bn.opts.processes) {
		int count = bn.opts.nranks / bn.opts.processes;

		bn_threads_run(number * count, count);
	} else {
		bn_rank_main(number);
	}
	bn_close_domain();
	fflush(stdout);
	return BN_PASS;
}

/* Stores the tests' capabilities in the options. Call before bn_open(). */
static void bn_caps(const char *tests)
{
	size_t i, len;

	for (; *tests; tests += len + !!tests[len]) {
		len = strcspn(tests, ",");
		for (i = 0; i < BN_COUNT(bn_tests); i++)
			if (strlen(bn_tests[i].name) == len &&
			    !strncmp(tests, bn_tests[i].name, len))
				bn.opts.caps |= bn_tests[i].caps;
		bn.opts.sleeps |= !strncmp(tests, "wake", 4);
	}
}

static void bn_options(int argc, char **argv)
{
	struct bn_opts *opts = &bn.opts;
	int letter;

	while ((letter = getopt(argc, argv, "p:s:P:t:n:m:b:S:a:qRcTiFH")) != -1) {
		switch (letter) {
		case 'p': opts->prov = optarg; break;
		case 's': opts->src = optarg; break;
		case 'P': opts->path = optarg; break;
		case 't': opts->tests = optarg; break;
		case 'n': opts->nranks = atoi(optarg); break;
		case 'm': opts->processes = atoi(optarg); break;
		case 'b': opts->budget_ms = atoi(optarg); break;
		case 'S': opts->max_size = strtoul(optarg, NULL, 0); break;
		case 'a': opts->timeout = atoi(optarg); break;
		case 'q': opts->few = true; break;
		case 'R': opts->remote = true; break;
		case 'c': opts->both_comm = true; break;
		case 'T': opts->tagged_only = true; break;
		case 'i': opts->inject = true; break;
		case 'F': opts->fifo = true; break;
		case 'H': opts->thread_safe = true; break;
		default: exit(BN_FAIL);
		}
	}
	if (!opts->prov || !opts->tests || opts->budget_ms < 1 ||
	    opts->nranks < 1 || opts->nranks > BN_MAX_RANKS ||
	    !opts->max_size || opts->processes < 0 ||
	    (opts->processes && opts->nranks % opts->processes)) {
		fprintf(stderr, "usage: duobench -p PROVIDER -t TEST,... "
			"[-n RANKS] [-m PROCESSES] [-s SOURCE] [-P shm|core] "
			"[-b MS] [-S BYTES] [-a SECONDS] [-qRcTiFH]\n");
		exit(BN_FAIL);
	}
	bn_caps(opts->tests);
}

/* Removes a failed process's files: shm regions and the directory of -R. */
static void bn_sweep(pid_t pid)
{
	char pattern[64];
	glob_t found;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/dev/shm/{%d:*,duobench.%d}",
		 (int) pid, (int) pid);
	if (glob(pattern, GLOB_BRACE, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		remove(found.gl_pathv[i]);
	globfree(&found);
}

static void bn_killed(int signal_number)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&bn.sh->failed, &none, BN_FAIL))
		return;
	if (signal_number == SIGALRM)
		printf("!fail not done after %d s\n", bn.opts.timeout);
	else
		printf("!fail a rank was killed by signal %d (%s)\n",
		       signal_number, strsignal(signal_number));
}

/*
 * Waits for all processes. Returns BN_PASS, the status of the rank that failed
 * first, or BN_FAIL if a process was killed.
 */
static int bn_reap(void)
{
	int status, worst = BN_PASS;
	pid_t pid;

	while ((pid = wait(&status)) > 0) {
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			continue;
		if (WIFSIGNALED(status))
			bn_killed(WTERMSIG(status));
		bn_sweep(pid);
		if (!worst)
			worst = BN_FAIL;
	}
	return atomic_load(&bn.sh->failed) ? atomic_load(&bn.sh->failed) :
					     worst;
}

int main(int argc, char **argv)
{
	int i, processes;

	bn_options(argc, argv);
	processes = bn.opts.processes ? bn.opts.processes : bn.opts.nranks;
	bn.sh = mmap(NULL, sizeof(*bn.sh), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bn.sh == MAP_FAILED) {
		perror("mmap");
		return BN_FAIL;
	}
	for (i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			BN_DIE("fork: %s", strerror(errno));
		if (!pid)
			exit(bn_process_main(i));
	}
	return bn_reap();
}
