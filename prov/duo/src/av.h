/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors: av.c has the calls of the application, av_map.c what shm
 * knows of our addresses, av_core.c the AVs of the core behind one of ours.
 * docs/overview.md has the rules.
 */
#ifndef DUO_AV_H
#define DUO_AV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "duo_compat.h"
#include "registry.h"
#include "registry_index.h"

#define duo_container_of(ptr, type, member) \
	((type *) ((char *) (ptr) - offsetof(type, member)))

#define DUO_SHM_PEERS 256	/* what one AV of shm holds */

struct duo_domain;
struct duo_ep;

/*
 * How a fi_addr is reached: one word, read without a lock. The low two bits
 * are the state, the high twelve the address in shm's AV plus one, 0 if shm
 * does not know the peer; between them is what the core's fi_addr has more
 * than ours, signed, 0 in most AVs (av_core.c). A state only ever changes
 * from UNDECIDED to CORE or SHM, so messages to one peer keep their order;
 * removing the address, or inserting it again for another process, starts
 * anew.
 */
enum duo_route_state {
	DUO_ROUTE_NONE,		/* not in the AV */
	DUO_ROUTE_UNDECIDED,	/* no send yet, no record found yet */
	DUO_ROUTE_CORE,
	DUO_ROUTE_SHM,
};

typedef _Atomic uint64_t duo_route_word;

/* An address that the core does not look up; len 0: it does. */
struct duo_kept_addr {
	uint8_t len;			/* bytes */
	uint8_t bytes[31];
};

#define DUO_AV_MAX (1U << 20)	/* fi_addr beyond: the core carries it */

/* An AV of the core, see av_core.c. */
struct duo_core_av {
	struct fid_av *av_fid;
	struct duo_av *av;		/* NULL: out of step, in no list */
	duo_route_word *route;		/* of its endpoints */
	uint32_t *fi_addr;	/* ours plus one, by the core's, 0: none;
				 * NULL: they are the same, route is the AV's */
	int eps;			/* bound to it */
	bool used;			/* it has had one */
	TAILQ_ENTRY(duo_core_av) link;
};
TAILQ_HEAD(duo_core_av_list, duo_core_av);

struct duo_av {
	struct fid_av av_fid;
	struct duo_domain *domain;
	struct fid_av *path_av[FI_DUO_PATH_COUNT];	/* core: the first */
	struct duo_core_av_list cores;
	struct fi_av_attr core_attr;
	bool beyond;		/* it has a fi_addr from DUO_AV_MAX on */
	duo_route_word *route;		/* DUO_AV_MAX, by fi_addr */
	struct duo_kept_addr *kept;	/* likewise */
	uint8_t *reason;		/* enum fi_duo_reason, likewise */
	fi_addr_t high;			/* all fi_addr in use are below */
	fi_addr_t peer_of_shm[DUO_SHM_PEERS];	/* shm address -> fi_addr */
	char shm_name[DUO_SHM_PEERS][DUO_SHM_NAME_MAX];	/* by shm address */
	uint64_t scanned;		/* state of the registry at last scan */
	struct duo_registry_index index;
	LIST_HEAD(, duo_ep) shm_eps;	/* enabled with a shm path */
	LIST_ENTRY(duo_av) link;	/* in domain->avs */
	atomic_int refs;
};

static inline struct duo_av *duo_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_av, av_fid);
}

/* av_map.c, under the domain's lock */
/* Addresses that the core has taken; bytes are theirs, NULL if not at hand. */
void duo_av_note_all(struct duo_av *av, const fi_addr_t *addr,
		     const void *bytes, size_t count);
void duo_av_forget(struct duo_av *av, fi_addr_t addr);
/* The core's bytes of an address; *len is the room on entry. */
int duo_av_core_addr(const struct duo_av *av, fi_addr_t addr, void *buf,
		     size_t *len);
enum duo_route_state duo_av_decide(struct duo_av *av, fi_addr_t addr);
/* Looks up in the registry whatever shm does not know yet. */
void duo_av_scan(struct duo_av *av);
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);
/* Before and after shm's endpoint of this name is closed. */
void duo_av_shm_leaves(struct duo_domain *domain, const char *shm_name);
void duo_av_shm_left(struct duo_domain *domain, const char *shm_name);

/* av_core.c, likewise */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* After the core's endpoint has been closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * The first AV of the core has returned these addresses: the others take
 * them as well, and they become ours. Returns how many of them some AV has
 * refused; none has those now, and err[i] says why unless it is NULL.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr, size_t count,
			 int *err);
int duo_core_av_lookup(const struct duo_av *av, fi_addr_t addr, void *buf,
		       size_t *len);
/* From the first AV; if it has none left of it, forget for the others. */
int duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);
void duo_core_av_forget(struct duo_av *av, fi_addr_t addr);
/* The word of an address, for the endpoints of all AVs of the core. */
void duo_core_av_route(struct duo_av *av, fi_addr_t addr, uint64_t word);

/* The fi_addr of the source of a message that came over the core. */
static inline fi_addr_t duo_core_av_source(const struct duo_core_av *core,
					   fi_addr_t src)
{
	if (!core->fi_addr || src == FI_ADDR_UNSPEC)
		return src;
	if (src >= DUO_AV_MAX || !core->fi_addr[src])
		return FI_ADDR_NOTAVAIL;
	return core->fi_addr[src] - 1;
}

/* The fi_addr of shm's address, FI_ADDR_UNSPEC if there is none. */
static inline fi_addr_t duo_av_peer(const struct duo_av *av,
				    fi_addr_t shm_addr)
{
	return shm_addr < DUO_SHM_PEERS ? av->peer_of_shm[shm_addr] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_AV_H */
