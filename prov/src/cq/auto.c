/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The thread that polls for the application if the domain has FI_PROGRESS_AUTO.
 * The thread takes the domain's lock for each poll.
 */

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
/* interval between two attempts to take the domain's lock, ms */
#define DUO_AUTO_RETRY_MS 1

/* domains with a progress thread; the mutex protects the list */
static pthread_mutex_t duo_auto_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_domain) duo_auto_domains =
	LIST_HEAD_INITIALIZER(duo_auto_domains);

/*
 * Resets the list and the mutex in the child after fork(). The child has none
 * of the parent's threads. If one of these threads held the mutex at the
 * fork(), no thread of the child would ever release it.
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
 * a deadlock: a thread may call exit() while it holds the domain's lock. That
 * thread then waits in duo_auto_unload() until this thread has ended.
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
	/*
	 * progress.pid is 0 if no thread was started. In a child after fork()
	 * it is the pid of the parent, which has the thread.
	 */
	if (domain->progress.pid != getpid())
		return;
	pthread_mutex_lock(&duo_auto_lock);
	duo_auto_join(domain);
	pthread_mutex_unlock(&duo_auto_lock);
}

/*
 * Ends the threads of all domains when the process exits or unloads this
 * module. The threads may use the core until then. libfabric's destructors run
 * after this function, because this module depends on libfabric.
 */
__attribute__((destructor)) static void duo_auto_unload(void)
{
	pthread_mutex_lock(&duo_auto_lock);
	while (!LIST_EMPTY(&duo_auto_domains))
		duo_auto_join(LIST_FIRST(&duo_auto_domains));
	pthread_mutex_unlock(&duo_auto_lock);
}
