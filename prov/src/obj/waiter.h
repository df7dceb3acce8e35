/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What somebody sleeps on, of a completion queue or a counter: one descriptor
 * for all that can wake him, with an event for what other threads of this
 * process do. Where somebody cannot signal, a timer stands for it.
 */
#ifndef DUO_OBJ_WAITER_H
#define DUO_OBJ_WAITER_H

#include <stdbool.h>
#include <rdma/fi_eq.h>

struct duo_waiter {
	enum fi_wait_obj obj;
	int fd;		/* -1: nobody sleeps on it */
	int event_fd, timer_fd;
};

/*
 * Without a descriptor unless it is wanted. -FI_ENOSYS: no wait object of ours.
 */
int duo_waiter_open(struct duo_waiter *waiter, enum fi_wait_obj obj,
		    bool wanted);
void duo_waiter_close(struct duo_waiter *waiter);
/* A descriptor that wakes him, too. A negative one is passed on. */
int duo_waiter_add(struct duo_waiter *waiter, int fd);
int duo_waiter_add_timer(struct duo_waiter *waiter);

/* Any thread. */
void duo_waiter_ring(const struct duo_waiter *waiter);
void duo_waiter_clear(const struct duo_waiter *waiter);
/* To the wait interval; an expiry that has not been read is forgotten. */
int duo_waiter_set_timer(const struct duo_waiter *waiter);
/* FI_GETWAIT and FI_GETWAITOBJ; -FI_ENOSYS: another command. */
int duo_waiter_control(const struct duo_waiter *waiter, int command, void *arg);

#endif /* DUO_OBJ_WAITER_H */
