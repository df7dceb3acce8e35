/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PROGRESS_AUTO: a thread for each domain polls the endpoints, also while
 * the application makes no calls. Only domains of the hook have the thread.
 * Cost: 100 wakeups a second for each domain. Lock: the domain's, during a
 * poll.
 */
#ifndef DUO_CQ_AUTO_H
#define DUO_CQ_AUTO_H

#include <stdbool.h>

struct duo_domain;
struct fi_info;

/* True if a domain of this info must have the thread. */
bool duo_auto_needed(const struct fi_info *info);
/*
 * Starts the thread if duo_auto_needed(). Returns 0, or an error, which was
 * logged.
 */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends the thread if there is one. The domain must have no endpoints. */
void duo_auto_stop(struct duo_domain *domain);

#endif /* DUO_CQ_AUTO_H */
