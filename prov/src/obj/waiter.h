/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The wait object of a CQ or counter: docs/completions.md, "Sleeping". */
#ifndef DUO_OBJ_WAITER_H
#define DUO_OBJ_WAITER_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct duo_waiter {
	enum fi_wait_obj obj;
	/* epoll file descriptor; -1: none, so that no event wakes a thread */
	int fd;
	int event_fd, timer_fd;		/* -1: none */
};

/*
 * Initializes the wait object. If `events` is true, opens fd and event_fd.
 * Returns 0, -FI_ENOSYS if obj is not supported, or another -errno.
 */
int duo_waiter_open(struct duo_waiter *waiter, enum fi_wait_obj obj,
		    bool events);
void duo_waiter_close(struct duo_waiter *waiter);
/*
 * Adds fd to the epoll set: a thread that sleeps on the wait object wakes when
 * fd is readable. fd may be the -errno of a call that should have opened it: if
 * fd is negative, adds nothing and returns fd. Otherwise returns 0 or -errno.
 */
int duo_waiter_add(struct duo_waiter *waiter, int fd);
/*
 * Creates the timer. If the epoll file descriptor is open, adds the timer to
 * the epoll set. Returns 0 or -errno.
 */
int duo_waiter_add_timer(struct duo_waiter *waiter);

/* Wakes the sleeping threads. Any thread may call this. */
void duo_waiter_wake(const struct duo_waiter *waiter);
/* Makes event_fd unreadable again, after duo_waiter_wake(). */
void duo_waiter_clear(const struct duo_waiter *waiter);
/*
 * Starts the timer, which expires after duo_params.wait_poll_us. Returns 0 or
 * -errno.
 */
int duo_waiter_set_timer(const struct duo_waiter *waiter);
/* Executes FI_GETWAIT and FI_GETWAITOBJ. Passes other commands to the core. */
int duo_waiter_control(const struct duo_waiter *waiter, struct fid *fid,
		       int command, void *arg);

#endif /* DUO_OBJ_WAITER_H */
