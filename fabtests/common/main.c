/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Options, forked ranks, time limit, and exit status of a test program. */

#include <execinfo.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ft.h"

#define FT_TIMEOUT_S 1800

struct ft_state ft = {
	.opts = {
		.prov = "tcp",
		.host = "host",
		.rank = -1,
		.timeout = FT_TIMEOUT_S,
		.seed = 1,
		.max_size = (size_t)64 << 20,
	},
	.phase = "start",
};

static _Thread_local uint64_t ft_rand_state;

static const char ft_usage[] =
	"usage: %s [-p PROV] [-s ADDR] [-S MAXSIZE] [-T SECONDS] [-x SEED]\n"
	"\t[-c CASE] [-q] [-n NRANKS] [-r RANK -o HOST:PORT [-H HOSTNAME]]\n"
	"Without -r, NRANKS processes are forked here.\n";

static void ft_end(int status)
{
	fflush(NULL);
	_exit(status);
}

void ft_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;
	char text[512];

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "FAILED: rank %d, %s, %s:%d: %s\n", ft.opts.rank,
		ft.phase, strrchr(file, '/') ? strrchr(file, '/') + 1 : file,
		line, text);
	ft_end(FT_FAIL);
	__builtin_unreachable();
}

void ft_skip(const char *fmt, ...)
{
	va_list args;
	char text[256];

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "SKIPPED: %s\n", text);
	ft_end(FT_SKIP);
	__builtin_unreachable();
}

static void ft_say_where(void)
{
	void *at[32];

	backtrace_symbols_fd(at, backtrace(at, FT_COUNT(at)), 2);
}

/* Signal handler for the time limit: prints a backtrace of this thread. */
static void ft_deadline(int sig)
{
	static const char text[] = "FAILED: no end after the time limit, in: ";
	char rank[] = " (rank 00)\n";

	rank[7] += ft.opts.rank / 10 % 10;
	rank[8] += ft.opts.rank % 10;
	if (write(2, text, sizeof(text) - 1) < 0 ||
	    write(2, ft.phase, strlen(ft.phase)) < 0 ||
	    write(2, rank, sizeof(rank) - 1) < 0)
		_exit(FT_FAIL);
	ft_say_where();
	_exit(FT_FAIL);
}

/*
 * Signal handler for crashes: prints a backtrace, and ends the process by the
 * same signal, which the parent then reports.
 */
static void ft_crashed(int sig)
{
	ft_say_where();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Installs handlers for crashes, unless a sanitizer reports them. */
static void ft_catch_crashes(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL,
				       SIGFPE };
	struct sigaction now;
	void *at[1];
	size_t i;

	/* load backtrace()'s library here, not in the signal handler */
	backtrace(at, 1);
	for (i = 0; i < FT_COUNT(crashes); i++)
		if (!sigaction(crashes[i], NULL, &now) &&
		    now.sa_handler == SIG_DFL)
			signal(crashes[i], ft_crashed);
}

uint64_t ft_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Sets this thread's seed, equal on all hosts for the same -x and salt. */
void ft_rand_seed(unsigned int salt)
{
	ft_rand_state = ft.opts.seed * 0x9e3779b97f4a7c15u + salt + 1;
}

unsigned int ft_rand(unsigned int below)
{
	uint64_t z = ft_rand_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (unsigned int)((z ^ (z >> 31)) % below);
}

void ft_run_cases(const struct ft_case *cases, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (ft.opts.only && strcmp(ft.opts.only, cases[i].name))
			continue;
		ft.phase = cases[i].name;
		ft_rand_seed(0);
		cases[i].run();
		ft_barrier();
		if (!ft.opts.rank)
			printf("ok: %s\n", cases[i].name);
	}
}

static void ft_parse(int argc, char **argv)
{
	char letters[64];
	int letter;

	snprintf(letters, sizeof(letters), "p:s:S:T:x:c:qn:r:o:H:%s",
		 ft_spec.opts ? ft_spec.opts : "");
	ft.opts.nranks = ft_spec.nranks;
	while ((letter = getopt(argc, argv, letters)) != -1) {
		switch (letter) {
		case 'p': ft.opts.prov = optarg; break;
		case 's': ft.opts.src = optarg; break;
		case 'S': ft.opts.max_size = strtoull(optarg, NULL, 0); break;
		case 'T': ft.opts.timeout = atoi(optarg); break;
		case 'x': ft.opts.seed = strtoul(optarg, NULL, 0); break;
		case 'c': ft.opts.only = optarg; break;
		case 'q': ft.opts.quick = true; break;
		case 'n': ft.opts.nranks = atoi(optarg); break;
		case 'r': ft.opts.rank = atoi(optarg); break;
		case 'o': ft.opts.oob = optarg; break;
		case 'H': ft.opts.host = optarg; break;
		default:
			if (!ft_spec.opt || letter == '?') {
				fprintf(stderr, ft_usage, argv[0]);
				exit(FT_FAIL);
			}
			ft_spec.opt(letter, optarg);
		}
	}
	if (ft.opts.nranks < 1 || ft.opts.nranks > FT_MAX_RANKS ||
	    ft.opts.rank >= ft.opts.nranks ||
	    (ft.opts.rank >= 0 && ft.opts.nranks > 1 && !ft.opts.oob)) {
		fprintf(stderr, ft_usage, argv[0]);
		exit(FT_FAIL);
	}
}

static int ft_rank_main(void)
{
	ft_catch_crashes();
	signal(SIGALRM, ft_deadline);
	signal(SIGPIPE, SIG_IGN);
	alarm(ft.opts.timeout);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (ft.opts.oob)
		ft_oob_connect(ft.opts.oob);
	if (ft.opts.nranks < ft_spec.min_ranks)
		ft_skip("%s needs %d ranks", ft_spec.name, ft_spec.min_ranks);
	ft_rand_seed(0);
	ft_spec.run();
	ft.phase = "end";
	ft_barrier();
	return FT_PASS;
}

/*
 * Returns the worse of two statuses: 1, 77, 3, 0, from worst to best. Status 3
 * reports only that another rank has exited.
 */
static int ft_worse(int a, int b)
{
	static const int order[] = { FT_FAIL, FT_SKIP, FT_GONE, FT_PASS };
	size_t i;

	for (i = 0; i < FT_COUNT(order); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return FT_FAIL;
}

/* With FT_STDERR=FILE, rank R writes stderr to FILE.R: lines do not mix. */
static void ft_own_stderr(int rank)
{
	const char *base = getenv("FT_STDERR");
	char path[4096];

	if (!base)
		return;
	snprintf(path, sizeof(path), "%s.%d", base, rank);
	if (!freopen(path, "w", stderr))
		_exit(FT_FAIL);
}

/*
 * Forks all ranks, rank 0 too: this process reports a crash of any rank.
 * Returns the worst status of the ranks.
 */
static int ft_fork_ranks(void)
{
	int n = ft.opts.nranks, pair[FT_MAX_RANKS][2], status, worst = FT_PASS;
	int r, i;

	for (r = 1; r < n; r++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[r]))
			return FT_FAIL;
	for (r = 0; r < n; r++) {
		if (fork())
			continue;
		ft.opts.rank = r;
		ft_own_stderr(r);
		for (i = 1; i < n; i++) {
			if (r == 0)
				ft_oob_adopt(i, pair[i][0]);
			else if (r == i)
				ft_oob_adopt(0, pair[i][1]);
			close(pair[i][r == i ? 0 : 1]);
			if (r != 0 && r != i)
				close(pair[i][0]);
		}
		exit(ft_rank_main());
	}
	for (r = 1; r < n; r++) {
		close(pair[r][0]);
		close(pair[r][1]);
	}
	for (r = 0; r < n && wait(&status) > 0; r++) {
		if (WIFSIGNALED(status))
			fprintf(stderr, "FAILED: a rank got signal %d (%s)\n",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		worst = ft_worse(worst, WIFEXITED(status) ?
				 WEXITSTATUS(status) : FT_FAIL);
	}
	return worst == FT_GONE ? FT_FAIL : worst;
}

int main(int argc, char **argv)
{
	ft_parse(argc, argv);
	if (ft.opts.rank < 0)
		return ft_fork_ranks();
	return ft_rank_main();
}
