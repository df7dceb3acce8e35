/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_duo_info --mpi: each process of a job opens an endpoint of ofi_duo, sends
 * a message to each other one, and queries ofi_duo for the path that it took,
 * and the reason. Rank 0 collects the results and prints them.
 */
#ifndef MPI_H
#define MPI_H

#include <stdbool.h>
#include <stdio.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_duo.h>

#include "info.h"
#include "launch.h"

#define MPI_WORD_MAX 128
#define MPI_ERROR_MAX 384

/* Result of a rank for its messages to and from another one. */
struct mpi_cell {
	char path;		/* enum mpi_cell_path */
	char reason;		/* 'a' + enum fi_duo_reason, or '-' */
	/* '+': the other rank's message has arrived, or '-' */
	char received;
};

enum mpi_cell_path {
	MPI_CELL_SELF = '.',
	MPI_CELL_NONE = '-',	/* no message could be sent */
	MPI_CELL_SHM = 's',
	MPI_CELL_CORE = 'c',
};

struct mpi_rank {
	char host[MPI_WORD_MAX];
	/* boot id of the kernel, which containers of a host share */
	char boot[MPI_WORD_MAX];
	char provider[MPI_WORD_MAX];
	char error[MPI_ERROR_MAX];	/* reason why it has no endpoint */
	void *addr;			/* address; NULL: it has none */
	struct mpi_cell *row;		/* NULL: not received yet */
};

struct mpi_job {
	struct launch launch;
	const char *provider;	/* option of the user, or NULL */
	const char *svg;	/* file, or NULL */
	bool json;
	struct mpi_rank *ranks;
	char reasons[FI_DUO_REASON_COUNT][MPI_WORD_MAX];
};

/* The endpoint and messages of this rank; in mpi_ep.c. */
struct mpi_ep {
	struct fi_info *info; /* only in mpi_ep_open() */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_ops_duo *ops;
	fi_addr_t *addrs;		/* of each rank */
	struct mpi_message *messages;	/* one to and one from each rank */
};

/* Opens the endpoint. Returns 0, or -1 with a message in ERROR. */
int mpi_ep_open(struct mpi_ep *ep, const struct info_fabric *fabric,
		const char *provider, char *error, size_t size);
size_t mpi_ep_address(struct mpi_ep *ep, void *addr, size_t size);
int mpi_ep_exchange(struct mpi_ep *ep, const struct mpi_job *job,
		    struct mpi_cell *row);
void mpi_ep_paths(struct mpi_ep *ep, struct mpi_job *job,
		  struct mpi_cell *row);
void mpi_ep_progress(struct mpi_ep *ep);
void mpi_ep_close(struct mpi_ep *ep);

bool mpi_same_machine(const struct mpi_rank *a, const struct mpi_rank *b);
bool mpi_same_host(const struct mpi_rank *a, const struct mpi_rank *b);
/* True if the message from rank FROM to rank TO has arrived. */
bool mpi_arrived(const struct mpi_job *job, int from, int to);

/* Adds findings about the whole matrix. */
void mpi_find(const struct mpi_job *job);
void mpi_print_text(const struct mpi_job *job);
void mpi_print_json(const struct mpi_job *job);
void mpi_print_svg(const struct mpi_job *job, FILE *to);

/* Runs all steps. Returns the exit status. */
int mpi_run(struct mpi_job *job);

#endif /* MPI_H */
