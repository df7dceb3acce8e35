/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The thread of FI_PROGRESS_AUTO. Each of its polls takes the domain's lock. */

#include <poll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "base/proc.h"
#include "cq/cq.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"

#define DUO_AUTO_MS 10	/* interval between two polls, ms */
/* interval between attempts to get the domain's lock, ms */
#define DUO_AUTO_RETRY_MS 1

/* domains with a progress thread; the mutex protects the list */
static pthread_mutex_t duo_auto_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_domain) duo_auto_domains =
	LIST_HEAD_INITIALIZER(duo_auto_domains);

/*
 * Resets list and mutex in a forked child. The child has none of the parent's
 * threads, one of which may have held the mutex.
 */
static void duo_auto_forked(void)
{
	pthread_mutex_init(&duo_auto_lock, NULL);
	LIST_INIT(&duo_auto_domains);
}

__attribute__((constructor)) static void duo_auto_loaded(void)
{
	pthread_atfork(NULL, NULL, duo_auto_forked);
}

static void duo_auto_poll(struct duo_domain *domain)
{
	struct duo_av *av;
	struct duo_ep *ep;

	LIST_FOREACH(av, &domain->avs, link) {
		LIST_FOREACH(ep, &av->eps, av_link)
			duo_ep_progress(ep);
	}
}

/*
 * Polls until progress.stop is set. Never waits for the domain's lock, to avoid
 * a deadlock: a thread that holds the lock may call exit(), and then waits for
 * this thread in duo_auto_unload().
 */
static void *duo_auto_run(void *arg)
{
	struct duo_domain *domain = arg;
	int wait_ms = DUO_AUTO_MS;

	while (!atomic_load(&domain->progress.stop)) {
		poll(NULL, 0, wait_ms);
		wait_ms = DUO_AUTO_RETRY_MS;
		if (!duo_lock_try(&domain->group.lock))
			continue;
		duo_auto_poll(domain);
		duo_unlock(&domain->group.lock);
		wait_ms = DUO_AUTO_MS;
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
	int ret;

	if (!duo_auto_needed(info))
		return 0;
	ret = duo_thread_start(&domain->progress.thread, duo_auto_run, domain);
	if (ret) {
		DUO_WARN(DOMAIN, "domain %p: no thread for FI_PROGRESS_AUTO: "
			 "%s; the core %s carries all messages. Raise the "
			 "limit of threads (ulimit -u, cgroup pids.max), or "
			 "set FI_PROGRESS_MANUAL in the hints\n",
			 (void *) domain, strerror(ret),
			 domain->fabric->core_name);
		return -ret;
	}
	domain->progress.pid = getpid();
	pthread_mutex_lock(&duo_auto_lock);
	LIST_INSERT_HEAD(&duo_auto_domains, domain, progress.link);
	pthread_mutex_unlock(&duo_auto_lock);
	return 0;
}

/* Removes the domain from the list and ends its thread. Needs duo_auto_lock. */
static void duo_auto_join(struct duo_domain *domain)
{
	LIST_REMOVE(domain, progress.link);
	atomic_store(&domain->progress.stop, true);
	pthread_join(domain->progress.thread, NULL);
	domain->progress.pid = 0;
}

void duo_auto_stop(struct duo_domain *domain)
{
	/* 0: no thread was started; the parent's pid: this is a forked child */
	if (domain->progress.pid != getpid())
		return;
	pthread_mutex_lock(&duo_auto_lock);
	duo_auto_join(domain);
	pthread_mutex_unlock(&duo_auto_lock);
}

/*
 * Ends all threads when the process exits or unloads this module. Until then
 * they may use the core: libfabric's destructors run later, because this module
 * depends on libfabric.
 */
__attribute__((destructor)) static void duo_auto_unload(void)
{
	pthread_mutex_lock(&duo_auto_lock);
	while (!LIST_EMPTY(&duo_auto_domains))
		duo_auto_join(LIST_FIRST(&duo_auto_domains));
	pthread_mutex_unlock(&duo_auto_lock);
}
