/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Assigns a CPU to each rank: first one CPU of each physical core, then the
 * other CPUs.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

/* True if the CPU is the first hardware thread of its physical core. */
static bool bn_first_thread(int cpu)
{
	char path[96];
	int first = cpu;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/"
		 "thread_siblings_list", cpu);
	file = fopen(path, "r");
	if (!file)
		return true;
	if (fscanf(file, "%d", &first) != 1)
		first = cpu;
	fclose(file);
	return first == cpu;
}

int bn_pin(int rank)
{
	int cpus[CPU_SETSIZE], cpu, pass, count = 0;
	cpu_set_t allowed, mine;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 1;
	for (pass = 0; pass < 2; pass++)
		for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed) &&
			    bn_first_thread(cpu) == !pass)
				cpus[count++] = cpu;
	CPU_ZERO(&mine);
	CPU_SET(cpus[rank % count], &mine);
	sched_setaffinity(0, sizeof(mine), &mine);
	return count;
}

void bn_fifo(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		BN_DIE("sched_setscheduler: %s", strerror(errno));
}
