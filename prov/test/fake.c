/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Common code of the fake core and the fake shm. */

#include <rdma/fi_errno.h>

#include "fake.h"

struct fake fake;
static LIST_HEAD(, fake_obj) fake_objs;
static struct fake_msg_list *const fake_msgs[] = {
	&fake.core.posted, &fake.core.unexp, &fake.core.claimed,
	&fake.shm.incoming, &fake.shm.queued, &fake.shm.started,
};

void fake_init(void)
{
	size_t i;

	memset(&fake, 0, sizeof(fake));
	LIST_INIT(&fake_objs);
	for (i = 0; i < ARRAY_SIZE(fake_msgs); i++)
		TAILQ_INIT(fake_msgs[i]);
	STAILQ_INIT(&fake.core.events);
	STAILQ_INIT(&fake.core.late);
	LIST_INIT(&fake.shm.maps);
	fake.core.own_addr = 1000;
}

static void fake_free_events(struct fake_event_list *list)
{
	struct fake_event *event;

	while ((event = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(event);
	}
}

void fake_fini(void)
{
	struct fake_obj *obj;
	struct fake_msg *msg;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fake_msgs); i++) {
		while ((msg = TAILQ_FIRST(fake_msgs[i]))) {
			TAILQ_REMOVE(fake_msgs[i], msg, link);
			free(msg);
		}
	}
	fake_free_events(&fake.core.events);
	fake_free_events(&fake.core.late);
	while ((obj = LIST_FIRST(&fake_objs))) {
		LIST_REMOVE(obj, link);
		if (!obj->closed) {
			free(obj->table);
			free(obj->map);
		}
		free(obj);
	}
}

/*
 * Calls libcheck only for a failure. ck_assert() takes a lock at each call. A
 * child that is forked while another thread holds this lock would wait forever.
 */
static void fake_require(bool ok, const struct fake_obj *obj, const char *what)
{
	if (!ok)
		ck_abort_msg("%s object of class %zu %s",
			     obj->path == FI_DUO_LOCAL ? "shm" : "core",
			     obj->fid.fclass, what);
}

void fake_no_fids(const struct fi_info *info)
{
	if ((info->fabric_attr && info->fabric_attr->fabric) ||
	    (info->domain_attr && info->domain_attr->domain))
		ck_abort_msg("the core gets a fid of ofi_duo");
}

/*
 * Returns the object of a fid. The memory of a closed object is kept, so that
 * the test fails here if the object is used.
 */
struct fake_obj *fake_obj_of(struct fid *fid)
{
	struct fake_obj *obj = (struct fake_obj *) fid;

	fake_require(!obj->closed, obj, "used after close");
	return obj;
}

int fake_enter(enum fi_duo_path path)
{
	return ++fake.path[path].calls == fake.path[path].fail_at ?
	       -FAKE_ERROR : 0;
}

void fake_ref(struct fake_obj *obj, struct fake_obj *to)
{
	int i;

	for (i = 0; obj->ref[i]; i++)
		fake_require(i < FAKE_REFS - 1, obj, "refers to too many");
	obj->ref[i] = to;
	to->refs++;
}

static struct fake_obj *fake_obj_new(enum fi_duo_path path, size_t fclass,
				     struct fi_ops *ops)
{
	struct fake_obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		ck_abort_msg("no memory");
	obj->path = path;
	obj->fid.fclass = fclass;
	obj->fid.ops = ops;
	LIST_INSERT_HEAD(&fake_objs, obj, link);
	fake.path[path].live++;
	return obj;
}

int fake_open(struct fake_obj *parent, size_t fclass, struct fi_ops *ops,
	      struct fake_obj **obj)
{
	int ret = fake_enter(parent->path);

	if (ret)
		return ret;
	*obj = fake_obj_new(parent->path, fclass, ops);
	fake_ref(*obj, parent);
	return 0;
}

int fake_close(struct fid *fid)
{
	struct fake_obj *obj = fake_obj_of(fid);
	int i;

	fake_require(!obj->refs, obj, "closed while in use");
	for (i = 0; i < FAKE_REFS && obj->ref[i]; i++)
		obj->ref[i]->refs--;
	obj->closed = true;
	fake.path[obj->path].live--;
	return 0;
}

int fake_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int fake_control(struct fid *fid, int command, void *arg)
{
	fake_obj_of(fid);
	fake.core.asked = fid;
	return command == FAKE_COMMAND ? 0 : -FI_ENOSYS;
}

int fake_ops;

#ifdef FI_EFA_DOMAIN_OPS
static int fake_query_mr(struct fid_mr *mr, struct fi_efa_mr_attr *attr)
{
	fake_obj_of(&mr->fid);
	fake.core.queried_mr = mr;
	return 0;
}

static struct fi_efa_ops_domain fake_efa_ops = { .query_mr = fake_query_mr };
#endif

int fake_ops_open(struct fid *fid, const char *name, uint64_t flags,
		  void **ops, void *context)
{
	fake_obj_of(fid);
	fake.core.asked = fid;
#ifdef FI_EFA_DOMAIN_OPS
	if (!strcmp(name, FI_EFA_DOMAIN_OPS)) {
		*ops = &fake_efa_ops;
		return 0;
	}
#endif
	*ops = &fake_ops;
	return strcmp(name, FAKE_OPS) && strcmp(name, DUO_EFA_GDA_OPS) ?
	       -FI_ENOSYS : 0;
}

struct fi_ops fake_fid_ops =
	FAKE_FID_OPS(fake_close, fake_no_bind, fake_control, fake_ops_open);

static int fake_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_domain **domain, void *context)
{
	struct fake_obj *obj, *parent = fake_obj_of(&fabric->fid);
	int ret = fake_open(parent, FI_CLASS_DOMAIN, &fake_fid_ops, &obj);

	fake_no_fids(info);
	if (ret)
		return ret;
	obj->domain.ops = parent->path == FI_DUO_LOCAL ? &fake_shm_domain_ops :
						       &fake_core_domain_ops;
	if (parent->path == FI_DUO_CORE)
		fake.core_threading = info->domain_attr->threading;
	obj->domain.mr = obj->path == FI_DUO_CORE ? &fake_core_mr_ops : NULL;
	*domain = &obj->domain;
	return 0;
}

static struct fi_ops_fabric fake_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fake_domain_open,
	.trywait = fake_core_trywait,
};

struct fid_fabric *fake_fabric_open(enum fi_duo_path path)
{
	struct fake_obj *obj = fake_obj_new(path, FI_CLASS_FABRIC,
					    &fake_fid_ops);

	obj->fabric.ops = &fake_fabric_ops;
	return &obj->fabric;
}

struct fake_msg *fake_msg_new(enum duo_rx_kind kind, const char *text)
{
	struct fake_msg *msg = calloc(1, sizeof(*msg));

	ck_assert_ptr_nonnull(msg);
	ck_assert_uint_le(strlen(text), sizeof(msg->payload));
	msg->kind = kind;
	msg->len = strlen(text);
	memcpy(msg->payload, text, msg->len);
	return msg;
}

size_t fake_scatter(enum fi_duo_path path, const struct fake_msg *msg,
		    const struct iovec *iov, void *const *desc, size_t count)
{
	size_t i, len, done = 0;

	for (i = 0; i < count && done < msg->len; i++) {
		len = iov[i].iov_len;
		if (len > msg->len - done)
			len = msg->len - done;
		if (len)
			memcpy(fake_reach(path, iov[i].iov_base, desc[i]),
			       msg->payload + done, len);
		done += len;
	}
	return done;
}
