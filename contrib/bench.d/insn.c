/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Counts the instructions per message. Unlike times, these counts hardly depend
 * on the other load of the host: more reads leave the fast path only if the
 * host is so busy that milliseconds pass between two reads. Rank 0 sends 8
 * bytes or 48 KiB to rank 1, in lockstep, so that each fi_cq_read(), except in
 * phase "idle", returns a completion. A counter of the CPU counts the
 * instructions. If duobench runs in callgrind (with --collect-atstart=no),
 * callgrind counts them, and writes a dump for each phase.
 *
 *	post	fi_trecv			rank 1
 *	send	fi_tsend			rank 0
 *	recv	fi_cq_read until the message	rank 1
 *	txcq	fi_cq_read of the send		rank 0
 *	idle	fi_cq_read of nothing		rank 1
 *	null	the measurement itself		rank 1
 *
 * Or an operation of rank 0 on 8 bytes of rank 1's memory:
 *
 *	op	fi_write, fi_read or fi_fetch_atomic	rank 0
 *	serve	fi_cq_read that executes the operation	rank 1
 *	done	fi_cq_read until the completion		rank 0
 *	idle, null	as above
 */

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define CALLGRIND_TOGGLE_COLLECT do { } while (0)
#define CALLGRIND_DUMP_STATS_AT(name) do { } while (0)
#endif

#define BN_INSN_MSGS 256
#define BN_INSN_WARM 32

enum bn_phase { BN_POST, BN_SEND, BN_RECV, BN_TXCQ, BN_OP, BN_SERVE, BN_DONE,
		BN_IDLE, BN_NULL, BN_PHASES };

static const struct {
	const char *name;
	int rank;
} bn_phases[] = {
	{ "post", 1 }, { "send", 0 }, { "recv", 1 }, { "txcq", 0 },
	{ "op", 0 }, { "serve", 1 }, { "done", 0 }, { "idle", 1 },
	{ "null", 1 },
};

struct bn_insn {
	const char *test;
	size_t len;		/* bytes */
	bn_op op;		/* NULL: the test sends messages */
};

static int bn_counter = -1; /* file descriptor of the perf event; -1: none */

static void bn_counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	if (!RUNNING_ON_VALGRIND)
		bn_counter = (int) syscall(SYS_perf_event_open, &attr, 0, -1,
					   -1, 0);
}

static void bn_count(bool on)
{
	if (bn_counter >= 0)
		ioctl(bn_counter, on ? PERF_EVENT_IOC_ENABLE :
		      PERF_EVENT_IOC_DISABLE, 0);
	else
		CALLGRIND_TOGGLE_COLLECT;
}

#define BN_COUNTED(on, statement) \
	do { \
		if (on) { \
			bn_count(true); \
			statement; \
			bn_count(false); \
		} else { \
			statement; \
		} \
	} while (0)

static void bn_lockstep_op(int phase, const struct bn_insn *what)
{
	if (!bn.rank)
		BN_COUNTED(phase == BN_OP, what->op(what->len, bn.ctx));
	bn_sync_still();
	if (bn.rank == 1)
		BN_COUNTED(phase == BN_SERVE, bn_poll());
	bn_sync_still();
	if (!bn.rank)
		BN_COUNTED(phase == BN_DONE, bn_rma_wait());
}

static void bn_lockstep_message(int phase, size_t len)
{
	uint64_t tx = bn.tx, rx = bn.rx;

	if (bn.rank == 1)
		BN_COUNTED(phase == BN_POST, bn_recv(bn_from(0), len,
						       BN_TAG));
	bn_sync_still();
	if (!bn.rank)
		BN_COUNTED(phase == BN_SEND, bn_send(bn.peer[1], len,
						       BN_TAG));
	bn_sync_still();
	if (bn.rank == 1)
		BN_COUNTED(phase == BN_RECV, bn_wait(tx, rx + 1));
	bn_sync_still();
	if (!bn.rank)
		BN_COUNTED(phase == BN_TXCQ, bn_wait(tx + 1, rx));
}

/*
 * Executes one operation in lockstep. Counts only the instructions of this
 * phase; BN_PHASES: counts none.
 */
static void bn_lockstep(int phase, const struct bn_insn *what)
{
	if (what->op)
		bn_lockstep_op(phase, what);
	else
		bn_lockstep_message(phase, what->len);
	if (bn.rank == 1) {
		BN_COUNTED(phase == BN_IDLE, bn_poll());
		BN_COUNTED(phase == BN_NULL, (void) 0);
	}
	/* RMA needs further polls, which belong to no phase */
	if (what->op)
		bn_sync();
	else
		bn_sync_still();
}

static double bn_phase(int phase, const struct bn_insn *what)
{
	bool mine = bn.rank == bn_phases[phase].rank;
	uint64_t count = 0;
	char name[32];
	int i;

	if (bn_counter >= 0)
		ioctl(bn_counter, PERF_EVENT_IOC_RESET, 0);
	/*
	 * Iterations with i < 0 are not counted. They follow a pause, after
	 * which near, the local transport of ofi_duo, reads the clock in more
	 * polls than usual.
	 */
	for (i = -BN_INSN_MSGS; i < BN_INSN_MSGS; i++)
		bn_lockstep(mine && i >= 0 ? phase : BN_PHASES, what);
	if (!mine)
		return 0;
	if (bn_counter < 0) {
		snprintf(name, sizeof(name), "bench:%s",
			 bn_phases[phase].name);
		CALLGRIND_DUMP_STATS_AT(name);
	} else if (read(bn_counter, &count, sizeof(count)) != sizeof(count)) {
		BN_DIE("reading the instruction counter");
	}
	return (double) count / BN_INSN_MSGS;
}

/* True if the test has this phase. Messages and RMA have different phases. */
static bool bn_phase_of(int phase, const struct bn_insn *what)
{
	return phase == BN_IDLE || (phase >= BN_OP) == !!what->op;
}

static void bn_insn_phases(const struct bn_insn what)
{
	uint64_t warm[BN_INSN_WARM];
	double null, count;
	int phase;

	bn_counter_open();
	if (bn_counter < 0 && !RUNNING_ON_VALGRIND)
		bn_fail(BN_SKIP, "no instruction counter here");
	bn_pingpong(8, warm, BN_INSN_WARM);	/* opens the connection */
	null = bn_phase(BN_NULL, &what);
	for (phase = 0; phase < BN_NULL; phase++) {
		if (!bn_phase_of(phase, &what))
			continue;
		count = bn_phase(phase, &what);
		if (bn.rank == 1)
			bn_sync();
		if (count && bn_counter >= 0)
			bn_print(count - null, "%s.%s", what.test,
				 bn_phases[phase].name);
		if (bn.rank != 1)
			bn_sync();
	}
	if (bn_counter >= 0)
		close(bn_counter);
	else if (bn.rank == 1)
		bn_print(BN_INSN_MSGS, "callgrind.msgs");
}

void bn_insn(void)
{
	bn_insn_phases((struct bn_insn) { "insn", 8, NULL });
}

void bn_insn_any(void)
{
	bn.any = true;
	bn_insn_phases((struct bn_insn) { "insn-any", 8, NULL });
	bn.any = false;
}

/*
 * Measures a message that is long enough for a single copy: if the kernel
 * permits process_vm_readv(), the receiver copies from the sender's memory.
 */
void bn_insn_large(void)
{
	bn_insn_phases((struct bn_insn) { "insn-large", 49152, NULL });
}

void bn_insn_put(void)
{
	bn_region_exchange();
	bn_insn_phases((struct bn_insn) { "insn-put", 8, bn_put });
}

void bn_insn_get(void)
{
	bn_region_exchange();
	bn_insn_phases((struct bn_insn) { "insn-get", 8, bn_get });
}

void bn_insn_fadd(void)
{
	bn_region_exchange();
	bn_insn_phases((struct bn_insn) { "insn-fadd", 8, bn_fadd });
}
