/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The thread that makes progress for an application that does not poll. */

#include <poll.h>
#include <signal.h>

#include "base/log.h"
#include "base/params.h"
#include "cq/auto.h"
#include "cq/cq.h"
#include "obj/domain.h"
#include "obj/ep.h"

#define DUO_AUTO_MS 10

static void duo_auto_poll(struct duo_domain *domain)
{
	struct duo_av *av;
	struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link) {
		LIST_FOREACH(ep, &av->local_eps, av_link) {
			duo_cq_progress(ep->rx_cq);
			if (ep->tx_cq != ep->rx_cq)
				duo_cq_progress(ep->tx_cq);
		}
	}
}

static void *duo_auto_run(void *arg)
{
	struct duo_domain *domain = arg;

	while (!atomic_load(&domain->progress.stop)) {
		poll(NULL, 0, DUO_AUTO_MS);
		duo_lock(&domain->lock);
		duo_auto_poll(domain);
		duo_unlock(&domain->lock);
	}
	return NULL;
}

bool duo_auto_needed(const struct fi_info *info)
{
	return duo_params.hook &&
	       info->domain_attr->data_progress == FI_PROGRESS_AUTO;
}

int duo_auto_start(struct duo_domain *domain, const struct fi_info *info)
{
	sigset_t all, before;
	int ret;

	if (!domain->peer || !duo_auto_needed(info))
		return 0;
	sigfillset(&all);	/* the application's handlers run elsewhere */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&domain->progress.thread, NULL, duo_auto_run,
			     domain);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	domain->progress.running = !ret;
	if (ret)
		DUO_WARN(DOMAIN, "domain %p: no thread for FI_PROGRESS_AUTO: "
			 "%s. Ask for FI_PROGRESS_MANUAL in the hints\n",
			 (void *) domain, strerror(ret));
	return -ret;
}

void duo_auto_stop(struct duo_domain *domain)
{
	if (!domain->progress.running)
		return;
	atomic_store(&domain->progress.stop, true);
	pthread_join(domain->progress.thread, NULL);
	domain->progress.running = false;
}
