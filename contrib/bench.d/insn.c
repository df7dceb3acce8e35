/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Instructions per message, which noise cannot touch: 8 bytes, or 16 KiB, from
 * rank 0 to rank 1 in lockstep, so that every read but the one of phase "idle"
 * finds what it waits for. Counted by the CPU's own counter where there is one,
 * or by callgrind with --collect-atstart=no, one dump per phase.
 *
 *	post	fi_trecv			rank 1
 *	send	fi_tsend			rank 0
 *	recv	fi_cq_read until the message	rank 1
 *	txcq	fi_cq_read of the send		rank 0
 *	idle	fi_cq_read of nothing		rank 1
 *	null	the measuring itself		rank 1
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

enum bn_phase { BN_POST, BN_SEND, BN_RECV, BN_TXCQ, BN_IDLE, BN_NULL,
		BN_PHASES };

static const char *const bn_phase_names[] = {
	"post", "send", "recv", "txcq", "idle", "null"
};

static int bn_counter = -1;	/* perf event */

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

/* phase: the one to count, BN_PHASES for none. */
static void bn_lockstep(int phase, size_t len)
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
	if (bn.rank == 1) {
		BN_COUNTED(phase == BN_IDLE, bn_poll());
		BN_COUNTED(phase == BN_NULL, (void) 0);
	}
	bn_sync_still();
}

static double bn_phase(int phase, size_t len)
{
	bool mine = bn.rank == !(phase == BN_SEND || phase == BN_TXCQ);
	uint64_t count = 0;
	char name[32];
	int i;

	if (bn_counter >= 0)
		ioctl(bn_counter, PERF_EVENT_IOC_RESET, 0);
	/* near looks at the clock more often after a pause, as for a dump */
	for (i = -BN_INSN_MSGS; i < BN_INSN_MSGS; i++)
		bn_lockstep(mine && i >= 0 ? phase : BN_PHASES, len);
	if (!mine)
		return 0;
	if (bn_counter < 0) {
		snprintf(name, sizeof(name), "bench:%s",
			 bn_phase_names[phase]);
		CALLGRIND_DUMP_STATS_AT(name);
	} else if (read(bn_counter, &count, sizeof(count)) != sizeof(count)) {
		BN_DIE("reading the instruction counter");
	}
	return (double) count / BN_INSN_MSGS;
}

static void bn_insn_phases(const char *test, size_t len)
{
	uint64_t warm[BN_INSN_WARM];
	double null, count;
	int phase;

	bn_counter_open();
	if (bn_counter < 0 && !RUNNING_ON_VALGRIND)
		bn_fail(BN_SKIP, "no instruction counter here");
	bn_pingpong(len, warm, BN_INSN_WARM);	/* connects */
	null = bn_phase(BN_NULL, len);
	for (phase = 0; phase < BN_NULL; phase++) {
		count = bn_phase(phase, len);
		if (bn.rank == 1)
			bn_sync();
		if (count && bn_counter >= 0)
			bn_print(count - null, "%s.%s", test,
				 bn_phase_names[phase]);
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
	bn_insn_phases("insn", 8);
}

void bn_insn_any(void)
{
	bn.any = true;
	bn_insn_phases("insn-any", 8);
	bn.any = false;
}

/* What the receiver takes out of the sender's memory, where it may. */
void bn_insn_large(void)
{
	bn_insn_phases("insn-large", 16384);
}
