/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PROGRESS_AUTO where the application has been promised it: a thread of the
 * domain polls what the application does not. Only the hook needs it; ofi_duo
 * and near offer FI_PROGRESS_MANUAL.
 *
 * Cost: 100 wake-ups a second for each such domain, each with one poll of its
 * endpoints. Locks: the domain's, for each poll.
 */
#ifndef DUO_CQ_AUTO_H
#define DUO_CQ_AUTO_H

#include <stdbool.h>

struct duo_domain;
struct fi_info;

/* True if local messages of a domain of this info need the thread. */
bool duo_auto_needed(const struct fi_info *info);
/* Starts the thread if it is needed. */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends it. The domain has no endpoints then. */
void duo_auto_stop(struct duo_domain *domain);

#endif /* DUO_CQ_AUTO_H */
