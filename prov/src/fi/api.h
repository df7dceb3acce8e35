/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Implementations of libfabric's calls, one file for each class of objects.
 * Each object of ofi_duo wraps an object of the core, which is the provider
 * that ofi_duo wraps. In some classes it also wraps an object of the local
 * transport. The calls that open and close an object of ofi_duo also open and
 * close the wrapped objects. Exception: fi_enable() opens an endpoint's object
 * of the local transport. An info is a struct fi_info.
 *
 * Cost: control path, except calls*.c. Locks (obj/group.h): a send, receive or
 * poll holds only one of the locks of the domain. Therefore a call that changes
 * data which sends, receives or polls read takes all locks of the domain.
 */
#ifndef DUO_API_H
#define DUO_API_H

#include <stdbool.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"

struct duo_domain;
struct duo_ep;
struct duo_fabric;

/* info.c: translates between infos of ofi_duo and infos of the core */
/* True if prov_name names a core and ofi_duo, such as "tcp;ofi_duo". */
bool duo_core_named(const char *prov_name);
/*
 * Returns the core's part of a provider name: "tcp;ofi_rxm" for
 * "tcp;ofi_rxm;ofi_duo". The caller must free the result. NULL: no core, or no
 * memory.
 */
char *duo_core_name(const char *prov_name);
struct fi_info *duo_info_to_core(const struct fi_info *info);
bool duo_info_restrict(struct fi_info *info);
/* True if the hints permit endpoints of type FI_EP_RDM. */
bool duo_hints_rdm(const struct fi_info *hints);
/* True if an info of ofi_duo may satisfy the hints. Otherwise logs a reason. */
bool duo_hints_supported(const struct fi_info *hints);
bool duo_info_satisfies(struct fi_info *info, const struct fi_info *hints);
/*
 * True if ofi_duo supports each capability, order and limit of an info of the
 * core. The hook then wraps the domain that the application opens with this
 * info. Otherwise logs a reason, and the hook leaves the domain to the core.
 */
bool duo_info_kept(const struct fi_info *info);
/* True if buffers of messages begin with a prefix (FI_MSG_PREFIX). */
bool duo_info_prefix(const struct fi_info *info);
/* True if the info has FI_FENCE, or an order between messages and RMA. */
bool duo_info_mixed(const struct fi_info *info);

/* getinfo.c: implements fi_getinfo(3) */
int duo_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/*
 * opened.c: the list of open fabrics and domains, by which fi_getinfo()
 * translates fids (docs/objects.md, "Fids in hints and infos"). Lock: a mutex,
 * under which no other lock is taken.
 */

/*
 * Open objects of ofi_duo to which the fids in the hints belong. NULL: the
 * hints have no such fid.
 */
struct duo_opened {
	struct duo_fabric *fabric;	/* set whenever domain is set */
	struct duo_domain *domain;
	/*
	 * true: a fid in the hints is not one of ofi_duo, or `domain` does not
	 * belong to `fabric`
	 */
	bool foreign;
};

void duo_opened_fabric(struct duo_fabric *fabric);
void duo_opened_domain(struct duo_domain *domain);
void duo_closed_fabric(struct duo_fabric *fabric);
void duo_closed_domain(struct duo_domain *domain);
/* Finds the open objects in the hints. Does not dereference the fids. */
struct duo_opened duo_opened_hinted(const struct fi_info *hints);
/* True if opened->foreign is not set. Otherwise logs a message. */
bool duo_opened_ours(const struct duo_opened *opened);
/* Replaces ofi_duo's fids in the hints by the fids of the core's objects. */
void duo_opened_to_core(const struct duo_opened *opened, struct fi_info *hints);
/*
 * Sets the fids of fabric and domain in an info of the core. Each becomes the
 * fid of ofi_duo's object that the hints name. If the hints name none, it
 * becomes the fid of an open object that fits the info, or NULL if no object
 * fits. Returns false if an object that the hints name does not fit the info.
 */
bool duo_opened_from_core(const struct duo_opened *opened,
			  const struct fi_info *hints, struct fi_info *info);

/* functions that open objects; for AVs, CQs and counters: av/ and cq/ */
int duo_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);
/*
 * Opens a fabric of ofi_duo that wraps the open fabric `core`. The new fabric
 * then owns `core`. ops: operations of the new fabric.
 */
int duo_fabric_hook(struct fid_fabric *core, const char *core_name,
		    struct fi_ops_fabric *ops, struct fid_fabric **fabric);
int duo_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		    struct fid_domain **domain_fid, void *context);
int duo_ep_open(struct fid_domain *domain_fid, struct fi_info *info,
		struct fid_ep **ep_fid, void *context);
/* ep_bind.c */
int duo_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int duo_ep_enable(struct duo_ep *ep);

/*
 * calls*.c: tables of the calls that send and receive messages, one for each
 * mode of the group's lock (enum duo_lock_mode). duo_ep_calls() in ops.c
 * selects a table for each endpoint:
 * - without a suffix: DUO_LOCK_OFF, FI_THREAD_DOMAIN
 * - _locked: DUO_LOCK_SHARED, a lock that several threads use
 * - _single: DUO_LOCK_SINGLE, FI_THREAD_COMPLETION
 * - _prefix: FI_MSG_PREFIX, in all modes
 */
extern struct fi_ops_msg duo_msg_ops, duo_msg_ops_locked, duo_msg_ops_single,
	duo_msg_ops_prefix;
extern struct fi_ops_tagged duo_tagged_ops, duo_tagged_ops_locked,
	duo_tagged_ops_single, duo_tagged_ops_prefix;

/* ops.c */
extern const struct duo_up duo_up;

/* mr.c */
extern struct fi_ops_mr duo_mr_ops;

/* opt.c */
void duo_ep_init_opts(struct duo_ep *ep, const struct fi_info *info);
int duo_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen);
int duo_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen);

/*
 * local.c: in the provider near, opens ep at the local transport. Then sets the
 * name of the core's endpoint, by fi_setname(3), to ep's address at the local
 * transport, so that fi_getname(3) returns this address. In other providers,
 * does nothing. Returns 0 or an error.
 */
int duo_ep_name_local(struct duo_ep *ep);
/*
 * Opens the local side of ep, that is, its part at the local transport. If this
 * fails, logs the error and returns 0, because the core then carries all
 * messages. In the provider near, whose core carries none, returns the error.
 * Takes all locks of the domain.
 */
int duo_ep_open_local(struct duo_ep *ep);
/* Reverts duo_ep_name_local() and duo_ep_open_local(). */
void duo_ep_close_local(struct duo_ep *ep);

/* stats.c */
extern struct fi_ops_duo duo_ops;
void duo_stats_print(const struct duo_ep *ep);

#endif /* DUO_API_H */
