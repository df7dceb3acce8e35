/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PROGRESS_AUTO, for domains of the hook: a thread polls the endpoints of
 * the domain while the application does not. The infos of ofi_duo and near have
 * FI_PROGRESS_MANUAL.
 *
 * Cost: 100 wake-ups a second and domain, with a poll of each endpoint. Locks:
 * the domain's, for each poll.
 */
#ifndef DUO_CQ_AUTO_H
#define DUO_CQ_AUTO_H

#include <stdbool.h>

struct duo_domain;
struct fi_info;

/* True if local messages of a domain of this info need the thread. */
bool duo_auto_needed(const struct fi_info *info);
/* Starts the thread if it is needed. Logs the failure. */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends the thread, if there is one. The domain must have no endpoints. */
void duo_auto_stop(struct duo_domain *domain);

#endif /* DUO_CQ_AUTO_H */
