/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What libfabric calls: one file per class of objects, and fi_getinfo. Both
 * paths' objects are opened and closed here; what is not ours is the core's.
 * local.c opens an endpoint's local side.
 *
 * Cost: control path; nothing here is called per message, ops.c but names who
 * is. Locks: calls take the domain's lock where they touch what the data path
 * does, and that of the registry's directory before it (local.c).
 */
#ifndef DUO_API_H
#define DUO_API_H

#include <stdbool.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"

struct duo_ep;

/* info.c: pure translation between an info of ours and the core's */
char *duo_core_name(const char *prov_name);
struct fi_info *duo_info_to_core(const struct fi_info *info);
int duo_info_restrict(struct fi_info *info);
int duo_hints_supported(const struct fi_info *hints);
int duo_info_satisfies(struct fi_info *info, const struct fi_info *hints);
/*
 * True if an endpoint of ours has all that an info of the core's promises. The
 * log names the attribute otherwise.
 */
bool duo_info_kept(const struct fi_info *info);
/* Messages from and to device memory? */
bool duo_info_device(const struct fi_info *info);
/* True if buffers of messages begin with a prefix. */
bool duo_info_prefix(const struct fi_info *info);
/* Asks for FI_FENCE, or an order between messages and RMA. */
bool duo_info_mixed(const struct fi_info *info);

/* getinfo.c */
int duo_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/* one opener per fid class; av/ and cq/ have theirs */
int duo_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);
/*
 * Opens a fabric over one that the application has opened of the core, which
 * is the new one's from then on. ops: the fabric's operations.
 */
int duo_fabric_hook(struct fid_fabric *core, const char *core_name,
		    struct fi_ops_fabric *ops, struct fid_fabric **fabric);
int duo_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		    struct fid_domain **domain_fid, void *context);
int duo_ep_open(struct fid_domain *domain_fid, struct fi_info *info,
		struct fid_ep **ep_fid, void *context);

/* calls.c, and calls_locked.c: the same, for a domain whose lock is on */
extern struct fi_ops_msg duo_msg_ops, duo_msg_ops_locked;
extern struct fi_ops_tagged duo_tagged_ops, duo_tagged_ops_locked;

/* calls_prefix.c: after duo_ep_calls(), if the info has FI_MSG_PREFIX */
void duo_ep_calls_prefix(struct duo_ep *ep, const struct fi_info *info);

/* ops.c */
void duo_ep_calls(struct duo_ep *ep);
extern const struct duo_up duo_up;

/* cm.c */
extern struct fi_ops_cm duo_cm_ops;

/* mr.c */
extern struct fi_ops_mr duo_mr_ops;

/* opt.c */
void duo_ep_init_opts(struct duo_ep *ep, const struct fi_info *info);
int duo_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen);
int duo_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen);
int duo_ep_get_flags(struct duo_ep *ep, uint64_t *flags);
int duo_ep_set_flags(struct duo_ep *ep, uint64_t *flags);

/*
 * local.c: an endpoint over a core without names gets that of its peer. Undone
 * by duo_ep_close_local().
 */
int duo_ep_name_local(struct duo_ep *ep);
/*
 * Takes the domain's lock. Where the core carries what local peers cannot, an
 * endpoint without a local side is no error.
 */
int duo_ep_open_local(struct duo_ep *ep);
void duo_ep_close_local(struct duo_ep *ep);

/* stats.c */
extern struct fi_ops_duo duo_ops;
void duo_stats_print(const struct duo_ep *ep);

#endif /* DUO_API_H */
