/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The steps of fi_duo_info --mpi. */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi.h"

#define MPI_ADDR_MAX 512
#define MPI_CARD_MAX (3 * MPI_WORD_MAX + MPI_ERROR_MAX + MPI_ADDR_MAX)

/*
 * Copies the first name that ends in END from the comma-separated LIST. False:
 * there is none, or LIST begins with "^", so its names are excluded.
 */
static bool mpi_name_in(const char *list, const char *end, char *name,
			size_t size)
{
	size_t end_len = strlen(end), len;

	if (!list || *list == '^')
		return false;
	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len < end_len || len >= size ||
		    memcmp(list + len - end_len, end, end_len))
			continue;
		snprintf(name, size, "%.*s", (int) len, list);
		return true;
	}
	return false;
}

/*
 * Selects the provider: the user's, else that in the variables of libfabric or
 * MPI, else the first of "usual" that libfabric returns.
 */
static void mpi_provider(const struct mpi_job *job,
			 const struct info_fabric *fabric, char *name)
{
	static const char *const variables[] = {
		"FI_PROVIDER", "OMPI_MCA_mtl_ofi_provider_include",
		"OMPI_MCA_opal_common_ofi_provider_include",
	};
	/* tcp;ofi_rxm is for libfabric 1.17 */
	static const char *const usual[] = { "efa", "tcp", "tcp;ofi_rxm" };
	const char *end = info_is_hooked() ? "" : ";ofi_duo";
	char offered[MPI_WORD_MAX];
	size_t i;

	if (job->provider) {
		snprintf(name, MPI_WORD_MAX, "%s", job->provider);
		setenv("FI_PROVIDER", name, 1);
		return;
	}
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (mpi_name_in(getenv(variables[i]), end, name, MPI_WORD_MAX))
			return;
	snprintf(name, MPI_WORD_MAX, "tcp%s", end);
	for (i = 0; fabric->version && i < sizeof(usual) / sizeof(usual[0]);
	     i++) {
		snprintf(offered, sizeof(offered), "%s%s", usual[i], end);
		if (!info_offers(fabric, offered))
			continue;
		snprintf(name, MPI_WORD_MAX, "%s", offered);
		return;
	}
}

static int mpi_put_card(struct mpi_job *job, const struct mpi_rank *me,
			struct mpi_ep *ep)
{
	char card[MPI_CARD_MAX];
	const char *words[] = { me->host, me->boot, me->provider, me->error };
	size_t at = 0, i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		at += (size_t) sprintf(card + at, "%s", words[i]) + 1;
	if (!me->error[0])
		at += mpi_ep_address(ep, card + at, MPI_ADDR_MAX);
	return launch_put(&job->launch, "card", card, at);
}

static int mpi_get_card(struct mpi_job *job, int i)
{
	struct mpi_rank *rank = &job->ranks[i];
	struct { char *to; size_t size; } words[] = {
		{ rank->host, sizeof(rank->host) },
		{ rank->boot, sizeof(rank->boot) },
		{ rank->provider, sizeof(rank->provider) },
		{ rank->error, sizeof(rank->error) },
	};
	size_t len, at = 0, w;
	void *data;
	char *card;

	if (launch_get(&job->launch, i, "card", &data, &len))
		return -1;
	card = data;
	for (w = 0; w < sizeof(words) / sizeof(words[0]) && at < len; w++) {
		snprintf(words[w].to, words[w].size, "%s", card + at);
		at += strlen(card + at) + 1;
	}
	if (at < len) {
		rank->addr = malloc(len - at);
		if (rank->addr)
			memcpy(rank->addr, card + at, len - at);
	}
	free(data);
	return 0;
}

/* Stores the row of this rank, then a line of text per reason. */
static int mpi_put_row(struct mpi_job *job, const struct mpi_cell *row)
{
	size_t len = (size_t) job->launch.size * sizeof(*row);
	char *data = malloc(len + sizeof(job->reasons)), *end;
	int i, ret;

	if (!data)
		return -1;
	memcpy(data, row, len);
	end = data + len;
	for (i = 0; i < FI_DUO_REASON_COUNT; i++)
		end += sprintf(end, "%s\n", job->reasons[i]);
	ret = launch_put(&job->launch, "row", data, (size_t) (end - data));
	free(data);
	return ret;
}

static int mpi_get_row(struct mpi_job *job, int i)
{
	size_t size = (size_t) job->launch.size * sizeof(struct mpi_cell), len;
	char *next, *line;
	void *data;
	int reason;

	if (launch_get(&job->launch, i, "row", &data, &len))
		return -1;
	if (len < size) {
		free(data);
		return -1;
	}
	job->ranks[i].row = data;
	next = (char *) data + size;
	for (reason = 0; reason < FI_DUO_REASON_COUNT; reason++) {
		line = strsep(&next, "\n");
		if (line && *line)
			snprintf(job->reasons[reason], MPI_WORD_MAX, "%s",
				 line);
	}
	return 0;
}

struct mpi_fence {
	struct launch *launch;
	int ret;
	atomic_bool done;
};

static void *mpi_fence_thread(void *arg)
{
	struct mpi_fence *fence = arg;

	fence->ret = fence->launch->ops->fence(fence->launch);
	fence->done = true;
	return NULL;
}

/*
 * Waits until all ranks have called this function. Another thread waits in the
 * launcher's fence(), so that this thread can make progress for its peers.
 */
static int mpi_fence(struct mpi_job *job, struct mpi_ep *ep)
{
	struct mpi_fence fence = { .launch = &job->launch };
	pthread_t thread;

	if (pthread_create(&thread, NULL, mpi_fence_thread, &fence))
		return -1;
	while (!fence.done) {
		mpi_ep_progress(ep);
		usleep(100);
	}
	pthread_join(thread, NULL);
	return fence.ret;
}

static void mpi_who(struct mpi_rank *me)
{
	if (gethostname(me->host, sizeof(me->host) - 1))
		snprintf(me->host, sizeof(me->host), "?");
	if (!info_read_line("/proc/sys/kernel/random/boot_id", me->boot,
			    sizeof(me->boot)))
		snprintf(me->boot, sizeof(me->boot), "%s", me->host);
}

static int mpi_talk(struct mpi_job *job, struct mpi_ep *ep)
{
	int size = job->launch.size, i;
	struct mpi_cell *row = malloc((size_t) size * sizeof(*row));
	int ret = -1;

	if (!row)
		return -1;
	for (i = 0; i < size; i++)
		row[i] = (struct mpi_cell) { MPI_CELL_NONE, '-', '-' };
	row[job->launch.rank].path = MPI_CELL_SELF;
	if (ep->ops) {
		if (mpi_ep_exchange(ep, job, row))
			goto out;
		mpi_ep_paths(ep, job, row);
	}
	if (!mpi_put_row(job, row))
		ret = mpi_fence(job, ep);
out:
	free(row);
	return ret;
}

/*
 * Reads all rows in rank 0. No rank exits before rank 0 has read its row:
 * launchers of other hosts return no values of ranks that have exited.
 */
static int mpi_collect(struct mpi_job *job, struct mpi_ep *ep)
{
	int i, ret = 0;

	for (i = 0; !ret && !job->launch.rank && i < job->launch.size; i++)
		ret = mpi_get_row(job, i);
	return mpi_fence(job, ep) ? -1 : ret;
}

/* Prints the result. For rank 0 only. Returns the exit status. */
static int mpi_report(struct mpi_job *job)
{
	FILE *svg;

	mpi_find(job);
	if (job->json)
		mpi_print_json(job);
	else
		mpi_print_text(job);
	if (job->svg) {
		svg = fopen(job->svg, "we");
		if (svg)
			mpi_print_svg(job, svg);
		if (!svg || fclose(svg)) {
			launch_say("--svg: %s: %s", job->svg, strerror(errno));
			return INFO_EXIT_ERROR;
		}
	}
	return info_exit_status();
}

static int mpi_steps(struct mpi_job *job, struct mpi_ep *ep)
{
	struct mpi_rank me = { 0 };
	struct info_fabric fabric;
	int i;

	mpi_who(&me);
	info_check_libfabric(&fabric);
	mpi_provider(job, &fabric, me.provider);
	mpi_ep_open(ep, &fabric, me.provider, me.error, sizeof(me.error));
	if (mpi_put_card(job, &me, ep) || mpi_fence(job, ep))
		return INFO_EXIT_ERROR;
	for (i = 0; i < job->launch.size; i++)
		if (mpi_get_card(job, i))
			return INFO_EXIT_ERROR;
	if (mpi_talk(job, ep) || mpi_collect(job, ep))
		return INFO_EXIT_ERROR;
	return job->launch.rank ? 0 : mpi_report(job);
}

int mpi_run(struct mpi_job *job)
{
	struct mpi_ep ep = { 0 };
	int status, i;

	if (launch_begin(&job->launch))
		return INFO_EXIT_MISUSE;
	job->ranks = calloc((size_t) job->launch.size, sizeof(*job->ranks));
	if (!job->ranks)
		return INFO_EXIT_ERROR;
	status = mpi_steps(job, &ep);
	mpi_ep_close(&ep);
	job->launch.ops->end(&job->launch);
	for (i = 0; i < job->launch.size; i++) {
		free(job->ranks[i].addr);
		free(job->ranks[i].row);
	}
	free(job->ranks);
	return status;
}
