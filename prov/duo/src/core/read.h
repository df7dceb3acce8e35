/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads of the core's CQ: what has our receives as contexts ends them, the
 * rest is the application's. Under the domain's lock.
 *
 * Cost: an entry is read to where the application wants it and changed there;
 * one whose receive is a rare one is copied (read.c).
 */
#ifndef DUO_READ_H
#define DUO_READ_H

#include "obj/cq.h"

/* Reads one batch; 0: there was none. */
int duo_cq_poll_core(struct duo_cq *cq);

#endif /* DUO_READ_H */
