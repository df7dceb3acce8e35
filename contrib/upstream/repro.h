/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the reproducers share: endpoints of one process that know one another,
 * and a child to crash or hang in. Public interface of libfabric alone.
 */
#ifndef REPRO_H
#define REPRO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define REPRO_EPS 3

struct repro_ep {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	fi_addr_t peer[REPRO_EPS];	/* of each endpoint, in this one's AV */
};

extern struct fi_info *repro_info;
extern struct fid_domain *repro_domain;
extern struct repro_ep repro_ep[REPRO_EPS];

/*
 * Endpoints of provider PROV with capabilities CAPS beside FI_MSG and
 * FI_TAGGED. The steps of it one by one:
 * domain; endpoint I, bound but not enabled; all insert all addresses.
 */
void repro_open(const char *prov, uint64_t caps, int eps);
void repro_open_domain(const char *prov, uint64_t caps);
void repro_open_ep(int i);
void repro_enable(int i);
void repro_introduce(int eps);

/* Fails the program, not the libfabric: what should work did not. */
void repro_must(ssize_t ret, const char *what);

/* Retries FI_EAGAIN, with progress. Untagged if TAG is 0. */
void repro_send(int from, int to, const void *buf, size_t len, uint64_t tag);

enum repro_result { REPRO_NONE, REPRO_DONE, REPRO_ERROR };

/*
 * The next completion of endpoint I's queue, while all endpoints make
 * progress; REPRO_NONE after about MS milliseconds. Of errors, prov_errno is in
 * *err.
 */
enum repro_result repro_next(int i, int ms, struct fi_cq_tagged_entry *entry,
			     struct fi_cq_err_entry *err);

/* A message, and a receive that it does not fit into. */
struct repro_size {
	size_t sent, room;	/* bytes, up to REPRO_LARGE */
	bool unexpected;	/* the message is there first */
};
#define REPRO_LARGE (1 << 20)

/*
 * Opens two endpoints of PROV; both happen, in that order, and what it comes to
 * is endpoint 0's next completion.
 */
void repro_truncate(const char *prov, const struct repro_size *size);

/* The defect is there: says how it shows and ends the child. */
void repro_shown(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * Runs TEST in a child and prints one line: "shown" if it called
 * repro_shown(), was killed, exited or did not end, "not shown" if it returned,
 * "cannot be tried" if something else failed. Returns main()'s exit status: 1,
 * 0, 77.
 */
int repro_run(const char *name, void (*test)(void));

/*
 * The same for each of COUNT sizes, which the test finds in repro_size; PROV
 * and WHAT: before and after the size in the line. 1: shown at least once.
 */
extern const struct repro_size *repro_size;
int repro_run_sizes(const char *prov, const char *what,
		    const struct repro_size *sizes, size_t count,
		    void (*test)(void));

#endif /* REPRO_H */
