/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A job survives the failure of a rank (ULFM: mpirun --with-ft ulfm). A random
 * rank gets SIGKILL at a random moment while all exchange messages. The others
 * revoke the communicator, shrink it, agree, and continue. Argument: a seed.
 *
 * contrib/torture runs this program. The output "survive: ok" shows success;
 * the exit status does not.
 */

#include "mt.h"

#include <signal.h>
#include <sys/time.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

#define MT_LEN 70000
#define MT_MOMENT_US 50000
#define MT_AFTER 20		/* number of rounds of the survivors */

static char *out, *in;

static void mt_die(int sig)
{
	(void)sig;
	kill(getpid(), SIGKILL);
}

/* Sets a timer that kills this rank, if the seed chooses it. */
static void mt_doom(unsigned int seed)
{
	struct itimerval at = { 0 };

	srand(seed);
	if (rand() % mt_size != mt_rank)
		return;
	at.it_value.tv_usec = 1 + rand() % MT_MOMENT_US;
	signal(SIGALRM, mt_die);
	setitimer(ITIMER_REAL, &at, NULL);
}

/* Sends around the ring of ranks and sums over them. Returns MPI's error. */
static int mt_round(MPI_Comm comm, int round)
{
	int rank, size, left, right, ret, sum, one = 1;
	int len = round % 4 ? 8 : MT_LEN;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	mt_fill(out, len, rank + round);
	ret = MPI_Sendrecv(out, len, MPI_BYTE, right, round, in, len, MPI_BYTE,
			   left, round, comm, MPI_STATUS_IGNORE);
	if (ret)
		return ret;
	mt_verify(in, len, left + round);
	ret = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	MT_CHECK(ret || sum == size, "%d ranks in a sum, not %d", sum, size);
	return ret;
}

static int mt_until_death(MPI_Comm comm)
{
	int round, class, ret = 0;

	for (round = 0; !ret; round++)
		ret = mt_round(comm, round);
	MPI_Error_class(ret, &class);
	MT_CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED ||
		 class == MPIX_ERR_PROC_FAILED_PENDING, "error class %d",
		 class);
	return class;
}

int main(int argc, char **argv)
{
	int size, rank, round, flag = 3, ret;
	MPI_Comm comm, rest;

	mt_begin(&argc, &argv, 3);
	out = mt_alloc(MT_LEN);
	in = mt_alloc(MT_LEN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	mt_round(comm, 0);
	mt_doom(argc > 1 ? strtoul(argv[1], NULL, 0) : 1);
	mt_until_death(comm);
	MPIX_Comm_revoke(comm);
	ret = MPIX_Comm_shrink(comm, &rest);
	MT_CHECK(!ret, "shrink: %d", ret);
	MPI_Comm_size(rest, &size);
	MT_CHECK(size == mt_size - 1, "%d survivors of %d", size, mt_size);
	ret = MPIX_Comm_agree(rest, &flag);
	MT_CHECK(!ret && flag == 3, "agree: %d, flag %d", ret, flag);
	for (round = 0; round < MT_AFTER; round++) {
		ret = mt_round(rest, round);
		MT_CHECK(!ret, "after the shrink: %d", ret);
	}
	MPI_Comm_rank(rest, &rank);
	if (!rank)
		printf("survive: ok, %d ranks of %d\n", size, mt_size);
	fflush(stdout);
	MPI_Barrier(rest);
	/* MPI_Finalize() of Open MPI 5.0 may wait for the dead rank */
	_exit(0);
}

#else

int main(int argc, char **argv)
{
	mt_begin(&argc, &argv, 1);
	return mt_end("no ULFM in this MPI");
}

#endif
