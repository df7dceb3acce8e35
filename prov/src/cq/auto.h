/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PROGRESS_AUTO: one thread per domain polls the endpoints. Only domains of
 * the hook have this thread. Cost: 100 wakeups a second. Each poll takes the
 * domain's lock.
 */
#ifndef DUO_CQ_AUTO_H
#define DUO_CQ_AUTO_H

#include <stdbool.h>

struct duo_domain;
struct fi_info;

/* True if a domain opened with this info must have a progress thread. */
bool duo_auto_needed(const struct fi_info *info);
/* Starts the thread if it is needed. Returns 0 or an error, which is logged. */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends the thread, if any. The domain must have no endpoints. */
void duo_auto_stop(struct duo_domain *domain);

#endif /* DUO_CQ_AUTO_H */
