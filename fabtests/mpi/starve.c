/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages must not starve messages that arrive over the core. A server
 * keeps a window of MPI_ANY_SOURCE receives. Local clients send requests
 * without pause, and wait for replies. The last rank sends a request every 20
 * ms over the core: its own registry directory keeps it out of shared memory.
 *
 * starve [WINDOW [SECONDS]]  at least 3 ranks: server, clients, the last rank
 */

#include <time.h>

#include "mt.h"

#define MT_TAG 5
/*
 * Differs from MT_TAG: a report may arrive while the server still has receives
 * for requests posted, and these must not match the report.
 */
#define MT_TAG_REPORT 6
#define MT_INTERVAL 0.02 /* seconds between two requests of the last rank */
#define MT_WINDOW_MAX 1024
/*
 * Limit of local round trips during one round trip of the last rank: about 1000
 * are usual, and above 100,000 would mean that a request waits for a pause of
 * the local clients. Unlike a time, the limit holds on a busy host.
 */
#define MT_LOCAL_PER_TRIP 25000

static int window = 32;
static double seconds = 3;

struct mt_trips {
	int count;
	double sum, max;	/* seconds */
	double time;		/* from the first to the last trip, seconds */
};

static const char *mt_env(const char *ompi, const char *pmi)
{
	return getenv(ompi) ? getenv(ompi) : getenv(pmi);
}

/*
 * Makes a registry directory for the last rank and sets it in that rank's
 * environment. Call before MPI_Init(). Returns the directory.
 */
static char *mt_hide_last(void)
{
	static char dir[] = "/tmp/duo_starve.XXXXXX";
	const char *rank = mt_env("OMPI_COMM_WORLD_RANK", "PMI_RANK");
	const char *size = mt_env("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");

	if (!rank || !size) {
		fprintf(stderr, "starve: no OMPI_COMM_WORLD_RANK and _SIZE, "
			"nor PMI_RANK and PMI_SIZE: start it with mpirun\n");
		exit(1);
	}
	if (atoi(rank) != atoi(size) - 1)
		return NULL;
	if (!mkdtemp(dir) || setenv("FI_OFI_DUO_REGISTRY_DIR", dir, 1)) {
		perror(dir);
		exit(1);
	}
	return dir;
}

static void mt_post(int *request, MPI_Request *posted)
{
	MPI_Irecv(request, 1, MPI_INT, MPI_ANY_SOURCE, MT_TAG, MPI_COMM_WORLD,
		  posted);
}

/*
 * Answers requests until the time is over and the last rank has had a quarter
 * of its expected answers. Afterwards the answer to each client's next request
 * reports that the test is over.
 */
static void mt_serve(void)
{
	int request[MT_WINDOW_MAX], i, stop, peers = mt_size - 1;
	int wanted = seconds / MT_INTERVAL / 4;
	double end = MPI_Wtime() + seconds;
	MPI_Request posted[MT_WINDOW_MAX];
	MPI_Status status;

	for (i = 0; i < window; i++)
		mt_post(&request[i], &posted[i]);
	while (peers) {
		MPI_Waitany(window, posted, &i, &status);
		MT_CHECK(request[i] == status.MPI_SOURCE, "%d's, not %d's",
			 request[i], status.MPI_SOURCE);
		wanted -= status.MPI_SOURCE == mt_size - 1;
		stop = wanted <= 0 && MPI_Wtime() >= end;
		peers -= stop;
		mt_post(&request[i], &posted[i]);
		MPI_Send(&stop, 1, MPI_INT, status.MPI_SOURCE, MT_TAG,
			 MPI_COMM_WORLD);
	}
	for (i = 0; i < window; i++) {
		MPI_Cancel(&posted[i]);
		MPI_Wait(&posted[i], MPI_STATUS_IGNORE);
	}
}

/* Sends a request and waits for the answer. Nonzero: the test is over. */
static int mt_ask(struct mt_trips *trips)
{
	double took, start = MPI_Wtime();
	int stop;

	MPI_Send(&mt_rank, 1, MPI_INT, 0, MT_TAG, MPI_COMM_WORLD);
	MPI_Recv(&stop, 1, MPI_INT, 0, MT_TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	took = MPI_Wtime() - start;
	trips->count++;
	trips->sum += took;
	if (took > trips->max)
		trips->max = took;
	return stop;
}

static void mt_client(struct mt_trips *trips)
{
	while (!mt_ask(trips))
		;
}

/*
 * Sends the last rank's requests. Sleeps between them, and does not poll: the
 * server and the local clients need the CPUs.
 */
static void mt_far_client(struct mt_trips *trips)
{
	const struct timespec interval = { .tv_nsec = MT_INTERVAL * 1e9 };
	double start = MPI_Wtime();

	while (!mt_ask(trips))
		nanosleep(&interval, NULL);
	trips->time = MPI_Wtime() - start;
}

static void mt_report(const struct mt_trips *far, int local)
{
	double beside = local * far->sum / far->time / far->count;

	printf("window %d, %d local clients: %d round trips in %g s or more; "
	       "the other: %d, mean %.3f ms, max %.3f ms\n",
	       window, mt_size - 2, local, seconds, far->count,
	       far->sum / far->count * 1e3, far->max * 1e3);
	MT_CHECK(beside <= MT_LOCAL_PER_TRIP,
		 "%.0f local round trips while one over the core is under way",
		 beside);
	MT_CHECK(local > far->count, "%d local round trips beside %d over the "
		 "core", local, far->count);
}

static void mt_collect(struct mt_trips *trips)
{
	int far = mt_size - 1, mine = mt_rank == far ? 0 : trips->count;
	int local = 0;

	MPI_Reduce(&mine, &local, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (mt_rank == far)
		MPI_Send(trips, sizeof(*trips), MPI_BYTE, 0, MT_TAG_REPORT,
			 MPI_COMM_WORLD);
	if (mt_rank)
		return;
	MPI_Recv(trips, sizeof(*trips), MPI_BYTE, far, MT_TAG_REPORT,
		 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	mt_report(trips, local);
}

int main(int argc, char **argv)
{
	char *dir = mt_hide_last();
	struct mt_trips trips = { 0 };
	int ret;

	mt_begin(&argc, &argv, 3);
	if (argc > 1)
		window = atoi(argv[1]);
	if (argc > 2)
		seconds = atof(argv[2]);
	MT_CHECK(window >= 1 && window <= MT_WINDOW_MAX && seconds > 0,
		 "starve [WINDOW [SECONDS]], WINDOW from 1 to %d",
		 MT_WINDOW_MAX);
	if (!mt_rank)
		mt_serve();
	else if (mt_rank == mt_size - 1)
		mt_far_client(&trips);
	else
		mt_client(&trips);
	mt_collect(&trips);
	ret = mt_end("starve");
	if (dir)
		rmdir(dir);
	return ret;
}
