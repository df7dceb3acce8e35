/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The matrix of paths from rank to rank. Finds problems in the matrix, and
 * prints the matrix as text or JSON.
 */

#include <stdio.h>
#include <string.h>

#include "mpi.h"

#define MPI_NARROW 100 /* largest number of ranks with blanks between columns */

bool mpi_same_machine(const struct mpi_rank *a, const struct mpi_rank *b)
{
	return !strcmp(a->boot, b->boot);
}

/* Compares host names too: containers of a machine have different ones. */
bool mpi_same_host(const struct mpi_rank *a, const struct mpi_rank *b)
{
	return mpi_same_machine(a, b) && !strcmp(a->host, b->host);
}

bool mpi_arrived(const struct mpi_job *job, int from, int to)
{
	return job->ranks[to].row[from].received == '+';
}

/* True if rank "from" should have sent a message to rank "to". */
static bool mpi_tried(const struct mpi_job *job, int from, int to)
{
	const struct mpi_rank *a = &job->ranks[from], *b = &job->ranks[to];

	return from != to && a->addr && b->addr &&
	       !strcmp(a->provider, b->provider);
}

static void mpi_find_errors(const struct mpi_job *job)
{
	const struct mpi_rank *rank, *other;
	int i, k, count;

	for (i = 0; i < job->launch.size; i++) {
		rank = &job->ranks[i];
		for (k = 0, count = 0; rank->error[0] &&
		     k < job->launch.size; k++) {
			other = &job->ranks[k];
			if (strcmp(rank->error, other->error) ||
			    !mpi_same_host(rank, other))
				continue;
			if (k < i)
				break;
			count++;
		}
		if (!rank->error[0] || k < job->launch.size)
			continue;
		info_found("rank", INFO_ERROR, "rank %d on %s has no endpoint "
			   "(%d such ranks on this host): %s", i, rank->host,
			   count, rank->error);
		info_remedy("if FI_PROVIDER_PATH is set, give it to all ranks "
			    "(mpirun -x FI_PROVIDER_PATH); else run "
			    "fi_duo_info on %s, in the launcher's environment, "
			    "for the reason", rank->host);
	}
}

static void mpi_find_providers(const struct mpi_job *job)
{
	const struct mpi_rank *first = &job->ranks[0], *rank;
	int i;

	for (i = 1; i < job->launch.size; i++) {
		rank = &job->ranks[i];
		if (!strcmp(first->provider, rank->provider))
			continue;
		info_found("provider", INFO_ERROR, "rank %d on %s uses \"%s\", "
			   "rank 0 on %s \"%s\": they cannot reach each other",
			   i, rank->host, rank->provider, first->host,
			   first->provider);
		info_remedy("give all ranks the same FI_PROVIDER (mpirun -x "
			    "FI_PROVIDER, srun --export=ALL)");
		return;
	}
}

static void mpi_find_lost(const struct mpi_job *job)
{
	int from, to, lost = 0, first_from = 0, first_to = 0;

	for (from = job->launch.size - 1; from >= 0; from--) {
		for (to = job->launch.size - 1; to >= 0; to--) {
			if (!mpi_tried(job, from, to) ||
			    mpi_arrived(job, from, to))
				continue;
			lost++;
			first_from = from;
			first_to = to;
		}
	}
	if (!lost)
		return;
	info_found("lost", INFO_ERROR, "%d messages have not arrived in %d s; "
		   "the first is from rank %d on %s to rank %d on %s", lost,
		   job->launch.timeout, first_from,
		   job->ranks[first_from].host, first_to,
		   job->ranks[first_to].host);
	info_remedy("let the two hosts reach each other by \"%s\" (EFA: a "
		    "security group that permits all traffic within itself; "
		    "others: no firewall), and try fi_pingpong between them; "
		    "on a host under load, a longer --timeout",
		    job->ranks[0].provider);
}

static const char *mpi_remedy(enum fi_duo_reason reason)
{
	switch (reason) {
	case FI_DUO_NOT_REGISTERED:
		return "give all ranks the same FI_OFI_DUO_REGISTRY_DIR, "
		       "/dev/shm and version of ofi_duo, run them as one user "
		       "of the host and, except EFA, in one network namespace";
	case FI_DUO_NAMESPACE:
		return "start all ranks of a host in one container, or in the "
		       "host's namespaces (docker --pid=host --ipc=host "
		       "--network=host), with one libfabric";
	case FI_DUO_NO_PEER_SLOT:
		return "with FI_OFI_DUO_LOCAL=shm, set near in all ranks, "
		       "which permits more local peers; otherwise start fewer "
		       "ranks on the host";
	case FI_DUO_LOCAL_OFF:
		return "run fi_duo_info there, with the number of ranks in "
		       "--ranks: it reports the problem";
	case FI_DUO_RECORD_UNREADABLE:
		return "raise the limit of open files (ulimit -n)";
	case FI_DUO_NOT_MAPPED:
		return "raise the limit of address space (ulimit -v), and run "
		       "all ranks of a host as one user; FI_LOG_LEVEL=warn "
		       "prints more";
	case FI_DUO_TRANSPORT_MISMATCH:
		return "give all ranks the same FI_OFI_DUO_LOCAL (mpirun -x "
		       "FI_OFI_DUO_LOCAL)";
	case FI_DUO_ORDER_UNSUPPORTED:
		return "give all ranks the same build of MPI, and the same "
		       "settings of libfabric";
	default:
		return "FI_LOG_LEVEL=warn FI_LOG_PROV=ofi_duo,ofi_hook_duo in "
		       "that rank prints more";
	}
}

/*
 * Reports pairs of ranks on one machine that use the core for REASON: with the
 * same host name if "host" is true, else in different containers.
 */
static void mpi_find_core(const struct mpi_job *job, enum fi_duo_reason reason,
			  bool host)
{
	int from, to, count = 0, first_from = 0, first_to = 0;
	const struct mpi_cell *cell;

	for (from = job->launch.size - 1; from >= 0; from--) {
		for (to = job->launch.size - 1; to >= 0; to--) {
			cell = &job->ranks[from].row[to];
			if (cell->path != MPI_CELL_CORE ||
			    cell->reason != 'a' + (int) reason ||
			    !mpi_same_machine(&job->ranks[from],
					      &job->ranks[to]) ||
			    mpi_same_host(&job->ranks[from],
					  &job->ranks[to]) != host)
				continue;
			count++;
			first_from = from;
			first_to = to;
		}
	}
	if (!count)
		return;
	info_found("core", host ? INFO_WARNING : INFO_NOTE, "%d messages "
		   "within %s took the core: %s; the first is from rank %d on "
		   "%s to rank %d on %s", count, host ? "a host" :
		   "a machine, between its containers", job->reasons[reason],
		   first_from, job->ranks[first_from].host, first_to,
		   job->ranks[first_to].host);
	info_remedy("%s", mpi_remedy(reason));
}

static void mpi_find_paths(const struct mpi_job *job)
{
	int from, to, shm = 0, local = 0, core = 0;

	for (from = 0; from < job->launch.size; from++) {
		for (to = 0; to < job->launch.size; to++) {
			if (from == to)
				continue;
			shm += job->ranks[from].row[to].path == MPI_CELL_SHM;
			core += job->ranks[from].row[to].path == MPI_CELL_CORE;
			local += mpi_same_host(&job->ranks[from],
					       &job->ranks[to]);
		}
	}
	info_found("paths", INFO_OK, "%d messages within a host; %d took "
		   "shared memory, %d took the core", local, shm, core);
}

void mpi_find(const struct mpi_job *job)
{
	int reason;

	mpi_find_errors(job);
	mpi_find_providers(job);
	mpi_find_lost(job);
	for (reason = 0; reason < FI_DUO_REASON_COUNT; reason++)
		mpi_find_core(job, (enum fi_duo_reason) reason, true);
	for (reason = 0; reason < FI_DUO_REASON_COUNT; reason++)
		mpi_find_core(job, (enum fi_duo_reason) reason, false);
	mpi_find_paths(job);
}

static char mpi_letter(const struct mpi_job *job, int from, int to)
{
	char path = job->ranks[from].row[to].path;

	if (mpi_tried(job, from, to) && !mpi_arrived(job, from, to))
		return '!';
	if (path == MPI_CELL_CORE && mpi_same_host(&job->ranks[from],
						   &job->ranks[to]))
		return 'C';
	return path;
}

void mpi_print_text(const struct mpi_job *job)
{
	int size = job->launch.size, from, to, width = 0;

	if (size <= MPI_NARROW)
		width = 1 + snprintf(NULL, 0, "%d", size - 1);
	printf("Messages of %d ranks over \"%s\"%s, row to column:\n", size,
	       job->ranks[0].provider,
	       strstr(job->ranks[0].provider, "ofi_duo") ? "" : " (hooked)");
	printf("%5s  %-16s", "rank", "host");
	for (to = 0; width && to < size; to++)
		printf("%*d", width, to);
	putchar('\n');
	for (from = 0; from < size; from++) {
		printf("%5d  %-16.16s", from, job->ranks[from].host);
		for (to = 0; to < size; to++)
			printf("%*c", width, mpi_letter(job, from, to));
		putchar('\n');
	}
	printf("s shared memory, c core, C core within a host, ! has not "
	       "arrived, - not sent\n\n");
	info_print_text();
}

static void mpi_print_cells(const struct mpi_job *job, const char *name,
			    bool reasons)
{
	const struct mpi_cell *cell;
	int from, to;

	printf("\"%s\": [", name);
	for (from = 0; from < job->launch.size; from++) {
		printf("%s\n  [", from ? "," : "");
		for (to = 0; to < job->launch.size; to++) {
			cell = &job->ranks[from].row[to];
			printf("%s", to ? ", " : " ");
			if (!reasons)
				info_print_string((char []) {
					mpi_letter(job, from, to), 0 });
			else if (cell->reason == '-')
				printf("null");
			else
				info_print_string(
					job->reasons[cell->reason - 'a']);
		}
		printf(" ]");
	}
	printf("\n],\n");
}

void mpi_print_json(const struct mpi_job *job)
{
	int i;

	printf("{ \"provider\": ");
	info_print_string(job->ranks[0].provider);
	printf(",\n\"hosts\": [");
	for (i = 0; i < job->launch.size; i++) {
		printf("%s", i ? ", " : " ");
		info_print_string(job->ranks[i].host);
	}
	printf(" ],\n");
	mpi_print_cells(job, "paths", false);
	mpi_print_cells(job, "reasons", true);
	info_print_json();
	printf(" }\n");
}
