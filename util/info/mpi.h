/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_duo_info --mpi: each rank of a job sends one message to each other rank.
 * Rank 0 collects the paths of all messages, with their reasons.
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

/* A rank's result for one other rank. */
struct mpi_cell {
	/* enum mpi_cell_path: path of the message to the other rank */
	char path;
	char reason;		/* 'a' + enum fi_duo_reason; '-': none */
	/* '+': the message from the other rank has arrived; '-': it has not */
	char received;
};

enum mpi_cell_path {
	MPI_CELL_SELF = '.',
	MPI_CELL_NONE = '-',	/* no message was sent */
	MPI_CELL_SHM = 's',
	MPI_CELL_CORE = 'c',
};

struct mpi_rank {
	char host[MPI_WORD_MAX];
	/* the kernel's boot id: the same in all containers of a machine */
	char boot[MPI_WORD_MAX];
	char provider[MPI_WORD_MAX];
	/* cause if the rank has no endpoint, else "" */
	char error[MPI_ERROR_MAX];
	void *addr;	/* the endpoint's address; NULL: none */
	struct mpi_cell *row; /* results for all ranks; NULL: none yet */
};

struct mpi_job {
	struct launch launch;
	const char *provider; /* the user's provider; NULL: none */
	const char *svg;	/* file for the picture; NULL: none */
	bool json;
	struct mpi_rank *ranks;
	char reasons[FI_DUO_REASON_COUNT][MPI_WORD_MAX];
};

/* The endpoint and the messages of this rank */
struct mpi_ep {
	struct fi_info *info; /* valid only in mpi_ep_open() */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_ops_duo *ops;
	fi_addr_t *addrs;		/* by rank */
	struct mpi_message *messages;	/* from each rank, then to each rank */
};

/* Opens the endpoint. Returns 0, or -1 with a text in ERROR. */
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

/* Adds the findings about the messages of all ranks. */
void mpi_find(const struct mpi_job *job);
void mpi_print_text(const struct mpi_job *job);
void mpi_print_json(const struct mpi_job *job);
void mpi_print_svg(const struct mpi_job *job, FILE *to);

/* Executes all steps of fi_duo_info --mpi. Returns the exit status. */
int mpi_run(struct mpi_job *job);

#endif /* MPI_H */
