/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The wait object of a completion queue or counter: an epoll descriptor of all
 * sources that can wake a sleeping thread. Other threads of this process write
 * to its eventfd. A timer replaces sources that have no descriptor.
 */
#ifndef DUO_OBJ_WAITER_H
#define DUO_OBJ_WAITER_H

#include <stdbool.h>
#include <rdma/fi_eq.h>

struct duo_waiter {
	enum fi_wait_obj obj;
	int fd;		/* epoll descriptor; -1: none, no thread sleeps on this
			 * object */
	int event_fd, timer_fd;
};

/*
 * Initializes the wait object, and opens descriptors if "wanted". Returns 0 or
 * -errno; -FI_ENOSYS: obj is not supported.
 */
int duo_waiter_open(struct duo_waiter *waiter, enum fi_wait_obj obj,
		    bool wanted);
void duo_waiter_close(struct duo_waiter *waiter);
/*
 * Adds a descriptor whose events wake the thread. Returns 0 or -errno. If fd is
 * negative, returns fd.
 */
int duo_waiter_add(struct duo_waiter *waiter, int fd);
int duo_waiter_add_timer(struct duo_waiter *waiter);

/* Wakes the sleeping threads. Any thread may call this. */
void duo_waiter_ring(const struct duo_waiter *waiter);
void duo_waiter_clear(const struct duo_waiter *waiter);
/*
 * Starts the timer, which expires after wait_poll_us. Clears an earlier
 * expiration. Returns 0 or -errno.
 */
int duo_waiter_set_timer(const struct duo_waiter *waiter);
/*
 * Executes FI_GETWAIT and FI_GETWAITOBJ. Returns 0 or an error, -FI_ENOSYS for
 * another command.
 */
int duo_waiter_control(const struct duo_waiter *waiter, int command, void *arg);

#endif /* DUO_OBJ_WAITER_H */
