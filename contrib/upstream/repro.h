/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions of the reproducers: endpoints of a process that have each other's
 * addresses, and a child that may crash or hang. Only libfabric's public
 * interface.
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
	fi_addr_t peer[REPRO_EPS]; /* fi_addr of each endpoint in this AV */
};

extern struct fi_info *repro_info;
extern struct fid_domain *repro_domain;
extern struct repro_ep repro_ep[REPRO_EPS];

/*
 * Opens endpoints of provider PROV with CAPS, FI_MSG and FI_TAGGED. The next
 * functions are its steps: open the domain; open endpoint I, bound but not
 * enabled; enable endpoint I; insert all addresses into all AVs.
 */
void repro_open(const char *prov, uint64_t caps, int eps);
void repro_open_domain(const char *prov, uint64_t caps);
void repro_open_ep(int i);
void repro_enable(int i);
void repro_introduce(int eps);

/* Ends the child if RET is an error of a necessary step. */
void repro_must(ssize_t ret, const char *what);

/* Sends a message, untagged if TAG is 0. Makes progress on -FI_EAGAIN. */
void repro_send(int from, int to, const void *buf, size_t len, uint64_t tag);

enum repro_result { REPRO_NONE, REPRO_DONE, REPRO_ERROR };

/*
 * Reads endpoint I's next completion, with progress on all endpoints.
 * REPRO_NONE: none within about MS ms. REPRO_ERROR: *err has the entry.
 */
enum repro_result repro_next(int i, int ms, struct fi_cq_tagged_entry *entry,
			     struct fi_cq_err_entry *err);

/* A message, and a receive that is too small for it. */
struct repro_size {
	size_t sent, room;	/* bytes, at most REPRO_LARGE */
	bool unexpected; /* the message arrives before the receive is posted */
};
#define REPRO_LARGE (1 << 20)

/*
 * Opens two endpoints of PROV, sends the message and posts the receive, in the
 * order of size->unexpected. The next completion of endpoint 0 is the result.
 */
void repro_truncate(const char *prov, const struct repro_size *size);

/* Reports that the defect occurred, and ends the child. */
void repro_shown(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * Runs TEST in a child, prints one line, and returns main()'s exit status:
 * - 1, "shown": TEST called repro_shown(), was killed, exited or did not end;
 * - 0, "not shown": TEST returned;
 * - 77, "cannot be tried": something else failed.
 */
int repro_run(const char *name, void (*test)(void));

/*
 * For each element of sizes[COUNT], sets the global variable repro_size, which
 * TEST reads, and calls repro_run(). The printed line has PROV, the size and
 * WHAT. Returns 1 if the defect occurred for at least one size; otherwise 0.
 */
extern const struct repro_size *repro_size;
int repro_run_sizes(const char *prov, const char *what,
		    const struct repro_size *sizes, size_t count,
		    void (*test)(void));

#endif /* REPRO_H */
