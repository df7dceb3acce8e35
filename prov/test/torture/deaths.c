/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Two processes communicate over near. One of them, the victim, is killed or
 * stopped for a while at a store to shared memory. This is done at each site
 * (stops.h), in both roles (talk.h).
 *
 * After a kill, all operations of the survivor must end within a second of CPU
 * time. Each completely sent message must have arrived. The survivor must not
 * have more memory and file descriptors in use than before the run. Then
 * another sender must reach the survivor's port.
 *
 * TORTURE_SEED    number of the first run (default 1); a failure prints the
 *                 number of its run
 * TORTURE_MS      time for each test, ms (default 500); after a stop at each
 *                 site, random sites follow until this time is over
 * TORTURE_STOP_MS time for which a process stays stopped, ms (default 20)
 */

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "near/rma/stage.h"
#include "stops.h"
#include "talk.h"

#define DEATHS_HANG_MS 120000
/* limit of the survivor's CPU time until all operations have ended */
#define DEATHS_LIMIT_MS 1000
#define DEATHS_TRIES 12 /* limit of runs for a site that none of them reaches */

static const struct talk_plan plans[] = {
	{ .name = "inline", TALK_MSG, 80, 0, 48 },
	{ .name = "eager", TALK_MSG, 60, 49, 1500 },
	{ .name = "growing", TALK_MSG, 150, 0, 6000, .memory = 63 * NEAR_PAGE },
	{ .name = "copied", TALK_MSG, 10, 20000, TALK_LARGE },
	{ .name = "fragments", TALK_MSG, 6, 9000, 60000, .no_cma = true },
	{ .name = "delegated", TALK_WRITE | TALK_READ, 80, 1, 24 },
	{ .name = "direct", TALK_WRITE | TALK_READ, 20, 1, 60000,
	  .direct = true },
	{ .name = "requested", TALK_WRITE | TALK_READ, 20, 1, 40000,
	  .no_cma = true },
	{ .name = "atomics", TALK_FETCH | TALK_WRITE, 80, 1, 24 },
	{ .name = "mixed", 15, 100, 0, 15000 },
	{ .name = "staged", TALK_WRITE | TALK_READ, 12, 1, 130000,
	  .device = NEAR_DEVICE_HOST },
	{ .name = "lent", TALK_WRITE | TALK_READ, 6, NEAR_LOAN_MIN, 260000,
	  .device = NEAR_DEVICE_LENT },
	{ .name = "mapped", TALK_WRITE | TALK_READ, 20, 1, 60000,
	  .device = NEAR_DEVICE_MAPPED },
	{ .name = "asleep", 15, 80, 0, 15000, .sleeps = true },
	/*
	 * Last, so that stopped_process_has_not_failed() can omit it: a stop in
	 * a pid namespace is not visible outside.
	 */
	{ .name = "far", 15, 80, 0, 15000, .sleeps = true, .far = true },
};
#define PLANS ((int)(sizeof(plans) / sizeof(plans[0])))

static struct talk_common *common;
/* number of the run, the seed of its random numbers */
static unsigned int run;
static uint32_t worst_ms;
static const char *now;		/* name of the run, for messages */

static uint64_t deaths_stop_ms(void)
{
	return unit_number("TORTURE_STOP_MS", 20);
}

/* Child: the victim */
static void deaths_victim(const struct talk_plan *plan, int role, int signal,
			  uint32_t site, uint32_t nth)
{
	struct talk *talk = malloc(sizeof(*talk));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stops_arm(run, signal, site, nth);
	talk_open(talk, plan, role, run, common);
	while (!talk_over(talk)) {
		if (talk_step(talk))
			continue;
		if (plan->sleeps && role == TALK_PASSIVE)
			talk_sleep(talk, 20);
		else
			sched_yield();
	}
	talk_close(talk);
	_exit(0);
}

/*
 * Waits for the child. Exits with the child's exit status, or with 128 plus the
 * number of the signal that killed the child: the first process of a pid
 * namespace cannot kill itself by this signal.
 */
static void deaths_relay(pid_t pid)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	waitpid(pid, &status, 0);
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	      WEXITSTATUS(status));
}

static pid_t deaths_fork(const struct talk_plan *plan, int role, int signal,
			 uint32_t site, uint32_t nth)
{
	pid_t pid = fork(), next;

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	if (plan->far) {
		if (unshare(CLONE_NEWPID))
			_exit(77);
		next = fork();
		if (next)
			deaths_relay(next);
		next = fork();
		if (next)
			deaths_relay(next);
	}
	deaths_victim(plan, role, signal, site, nth);
	return 0;
}

/* Waits for the victim's end; true if a signal killed it. */
static bool deaths_killed(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL)
		return true;
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status),
		      "%s: the victim ended with status %x", now, status);
	return false;
}

static unsigned int deaths_events(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) ||
	    !info.si_pid)
		return 0;
	return info.si_code == CLD_STOPPED ? CLD_STOPPED : CLD_EXITED;
}

/* Keeps the victim stopped for a while; no operation may fail meanwhile. */
static void deaths_resume(struct talk *talk, pid_t pid)
{
	uint64_t until_ms = duo_now_ms() + deaths_stop_ms();
	siginfo_t info;

	waitid(P_PID, pid, &info, WSTOPPED | WNOHANG);
	while (duo_now_ms() < until_ms) {
		if (!talk_step(talk))
			usleep(200 + (useconds_t)deaths_stop_ms());
		/*
		 * near may report the victim as failed only if the victim was
		 * stopped while it closed its port, after all operations
		 */
		ck_assert_msg((!talk->gone || talk_over(talk)) && !talk->failed,
			      "%s: stopped is not dead", now);
	}
	kill(pid, SIGCONT);
}

static void deaths_pause(struct talk *talk)
{
	/* in odd runs, near detects the failure as for a sleeping thread */
	if (talk->plan->sleeps && talk->role == TALK_PASSIVE)
		talk_sleep(talk, 100);
	else if (run & 1)
		near_woken(talk->rig->port);
	usleep(run & 1 ? 50 : 500);
}

/*
 * True if the port uses at most `taken` bytes, as before the run. Also true if
 * a sender of another pid namespace failed while it attached to a ring: near
 * keeps the sender's claim, because the claim does not identify the sender yet
 * (docs/reliability.md).
 */
static bool deaths_clean(const struct talk *talk, size_t taken)
{
	const struct near_segment *segment = talk->rig->port->segment;
	uint32_t i;

	for (i = 0; talk->plan->far && i < NEAR_CLAIMS_PER_PAGE; i++)
		if (segment->claim[i].state == NEAR_CLAIM_TAKEN)
			return true;
	return rig_taken(talk->rig) <= taken;
}

/* Polls until the victim has ended and the port has no resource of it. */
static void deaths_survive(struct talk *talk, pid_t pid, size_t taken)
{
	uint64_t hang_ms = duo_now_ms() + DEATHS_HANG_MS + deaths_stop_ms();
	uint64_t dead_ms = 0, cpu_ms = 0;
	unsigned int event;

	for (;;) {
		if (!talk_step(talk))
			deaths_pause(talk);
		talk_over(talk);
		event = deaths_events(pid);
		if (event == CLD_STOPPED)
			deaths_resume(talk, pid);
		if (event == CLD_EXITED && !dead_ms) {
			/* read the victim's requests, if the socket has any */
			if (talk->plan->far)
				near_fdx_read(talk->rig->port);
			dead_ms = duo_now_ms();
			cpu_ms = unit_cpu_ms();
		}
		if (dead_ms && talk_alone(talk) && (!talk->to || talk->gone) &&
		    deaths_clean(talk, taken))
			break;
		ck_assert_msg(duo_now_ms() < hang_ms, "%s: hangs: %u rings, "
			      "%u under way, next %u, %zu bytes, %sdead", now,
			      rig_rx_rings(talk->rig), talk->under_way,
			      talk->next, rig_taken(talk->rig) - taken,
			      dead_ms ? "" : "not ");
	}
	ck_assert_msg(unit_cpu_ms() - cpu_ms <= DEATHS_LIMIT_MS,
		      "%s: its end took %lu ms", now,
		      (unsigned long)(unit_cpu_ms() - cpu_ms));
	if (duo_now_ms() - dead_ms > worst_ms)
		worst_ms = (uint32_t)(duo_now_ms() - dead_ms);
}

/* Checks that no peer is left, and that another sender can use the port. */
static void deaths_serve(struct talk *talk)
{
	struct rig *rig = talk->rig, *other;
	struct near_peer *peer;

	if (talk->to) {
		near_peer_put(rig->port, talk->to);
		talk->to = NULL;
	}
	ck_assert_msg(near_list_empty(&rig->port->peers), "%s: a peer stays",
		      now);
	other = rig_open(false);
	peer = rig_peer(other, rig);
	ck_assert_int_eq(rig_send(other, peer, 7, "8 bytes", 8), 0);
	rig_until(rig, NULL, 1);
	ck_assert_uint_eq(rig->event[0].msg.tag, 7);
	near_peer_put(rig->port, rig->event[0].peer);
	rig->count = 0;
	near_peer_put(other->port, peer);
	rig_close(other);
}

/* Executes a run with one victim; true if the victim was killed. */
static bool deaths_run(const struct talk_plan *plan, int role, int signal,
		       uint32_t site, uint32_t nth)
{
	static struct talk survivor;
	const struct stops_site *at = stops_site(site);
	unsigned int files = rig_files();
	static char text[160];
	bool killed;
	size_t taken;
	pid_t pid;

	snprintf(text, sizeof(text), "%s, TORTURE_SEED=%u, %s at %#lx, time %u",
		 plan->name, run, role == TALK_ACTIVE ? "active" : "passive",
		 at && nth ? (unsigned long)stops_offset(at) : 0ul, nth);
	now = text;
	memset(common, 0, offsetof(struct talk_common, memory));
	memset(common->memory, 0, sizeof(common->memory));
	talk_open(&survivor, plan, !role, run, common);
	taken = rig_taken(survivor.rig);
	pid = deaths_fork(plan, role, signal, site, nth);
	deaths_survive(&survivor, pid, taken);
	killed = deaths_killed(pid);
	talk_check(&survivor, !killed);
	ck_assert_msg(killed || !survivor.failed, "%s: %u operations failed",
		      now, survivor.failed);
	deaths_serve(&survivor);
	talk_close(&survivor);
	ck_assert_msg(rig_files() == files, "%s: %u descriptors, not %u", now,
		      rig_files(), files);
	return killed;
}

/* Chooses one of the sites with the fewest tries; false: none may be tried. */
static bool deaths_choose(uint32_t most, unsigned int *seed, uint32_t *site_out)
{
	uint32_t i, best = UINT32_MAX, ties = 0;
	const struct stops_site *site;

	for (i = 0; (site = stops_site(i)); i++) {
		if (site->tried >= most || (!site->stopped &&
					    site->tried >= DEATHS_TRIES))
			continue;
		if (site->tried < best) {
			best = site->tried;
			ties = 0;
		}
		if (site->tried == best && rand_r(seed) % ++ties == 0)
			*site_out = i;
	}
	return best != UINT32_MAX;
}

/* True if a process was killed or stopped at a site. */
static bool deaths_stopped(void)
{
	const struct stops_site *site;
	uint32_t i;

	for (i = 0; (site = stops_site(i)); i++)
		if (site->stopped)
			return true;
	return false;
}

static void deaths_report(const struct talk_plan *plan, int role,
			  const char *what, unsigned int first,
			  unsigned int runs)
{
	const struct stops_site *site;
	uint32_t i, stopped = 0, missed = 0;

	for (i = 0; (site = stops_site(i)); i++) {
		stopped += !!site->stopped;
		missed += !site->stopped && site->tried;
	}
	ck_assert_msg(i && stopped, "no process was stopped at a store");
	fprintf(stderr, "torture: deaths: %s %s %s: %u runs from seed %u, %u "
		"sites, %u with a stop, %u not reached again, slowest end %u "
		"ms\n", plan->name, role == TALK_ACTIVE ? "active" : "passive",
		what, runs, first, i, stopped, missed, worst_ms);
}

static void deaths_sweep(int number, int signal, const char *what)
{
	const struct talk_plan *plan = &plans[number / TALK_ROLES];
	const int role = number % TALK_ROLES;
	const unsigned int first = (unsigned int)
		unit_number("TORTURE_SEED", 1);
	uint64_t until_ms = duo_now_ms() + unit_number("TORTURE_MS", 500);
	unsigned int seed = first;
	struct stops_site *site;
	uint32_t i = 0, runs;

	if (plan->far && geteuid()) {
		fprintf(stderr, "SKIP: deaths far (needs root)\n");
		return;
	}
	stops_clear();
	run = first;
	deaths_run(plan, role, signal, 0, 0);
	/* the first run only finds sites; a later run may not reach its site */
	for (runs = 1; !deaths_stopped() || duo_now_ms() < until_ms; runs++) {
		if (!deaths_choose(UINT32_MAX, &seed, &i))
			break;
		site = stops_site(i);
		/*
		 * the first stop at a site repeats the random numbers of the
		 * run that reached the site
		 */
		run = site->stopped ? first + runs : site->run;
		site->tried++;
		deaths_run(plan, role, signal, i, site->stopped ?
			   1 + rand_r(&seed) % site->seen : 1);
	}
	deaths_report(plan, role, what, first, runs);
}

static void setup(void)
{
	stops_init();
	common = talk_common();
	worst_ms = 0;
}

UNIT_LONG_CASE("deaths", setup, rig_close_all, 3600);

UNIT_LOOP(killed_process_leaves_survivor_working, 0, PLANS * TALK_ROLES)
{
	deaths_sweep(_i, SIGKILL, "killed");
}

UNIT_LONG_CASE("stops", setup, rig_close_all, 3600);

UNIT_LOOP(stopped_process_has_not_failed, 0, (PLANS - 1) * TALK_ROLES)
{
	deaths_sweep(_i, SIGSTOP, "stopped");
}

UNIT_LONG_CASE("long_stops", NULL, NULL, 3600);

/*
 * All plans except the last run at the same time, because most of their
 * processes are stopped or asleep. contrib/torture sets a long TORTURE_STOP_MS.
 */
UNIT_TEST(process_stopped_for_long_has_not_failed)
{
	pid_t pid[(PLANS - 1) * TALK_ROLES];
	int i, status;

	for (i = 0; i < (PLANS - 1) * TALK_ROLES; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (pid[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setup();
		deaths_sweep(i, SIGSTOP, "stopped for long");
		_exit(0);
	}
	for (i = 0; i < (PLANS - 1) * TALK_ROLES; i++) {
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_msg(!status, "sweep %d: wait status %#x", i, status);
	}
}
