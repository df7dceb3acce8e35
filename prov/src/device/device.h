/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copying from and to the memory of a device, for near
 * (docs/objects.md). "Descriptor" is that of fi_mr_desc(3), which the core
 * assigns. A buffer is device memory if its descriptor is that of a region of
 * device memory (duo_device_find()). Host buffers may have descriptors, too.
 *
 * A copy must not wait for the application's work on the device, because that
 * might be a deadlock: a thread may hold the domain's lock while it waits for
 * the copy, and a callback of that work may wait for the same lock.
 *
 * Cost: without device memory, a branch per message. With device memory, a
 * search in a tree per buffer with a descriptor, and at least 6 us per message
 * from or to device memory.
 *
 * Lock: the domain's (duo_domain.group.lock). duo_device_register(), _list()
 * and _unlist() take it. The caller must hold it for _find(), _any(),
 * _handles(), _out(), _in() and the functions of duo_device_near.
 */
#ifndef DUO_DEVICE_H
#define DUO_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <rdma/fi_domain.h>

#include "near/near.h"

struct duo_domain;
struct duo_mr;

struct duo_device_iface;

/* First member of the interfaces' structs for copies, pins and mappings. */
struct duo_device_handle {
	const struct duo_device_iface *iface;
};

struct duo_device_iface {
	enum fi_hmem_iface id;
	/*
	 * Only for unsupported interfaces, which have no functions: name, and
	 * library that each process with this kind of memory has loaded
	 */
	const char *name, *library;
	/*
	 * Prepares copying from and to the memory at addr. Stores in *state the
	 * argument `state` of the functions below. Returns 0 or -errno.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    void **state);
	/* Waits for all copies from and to the region; releases the state. */
	void (*close)(void *state);
	/*
	 * start(), done(), pin() and unpin() are as in struct near_device, but
	 * with `state` in place of the argument `device`. At least one of `to`
	 * and `from` is device memory.
	 */
	int (*start)(void *state, void *to, const void *from, size_t len,
		     struct duo_device_handle **copy);
	int (*done)(struct duo_device_handle *copy);
	/* The member is NULL if the library cannot pin. */
	struct duo_device_handle *(*pin)(void *state, void *memory, size_t len);
	void (*unpin)(struct duo_device_handle *pin);
	/*
	 * True if pin() or the application has pinned this host memory. The
	 * member may be NULL. An interface that has this member must accept
	 * NULL as the state of pin(), because duo_device_register() pins host
	 * regions without a state.
	 */
	bool (*pinned)(void *state, const void *memory, size_t len);
	/*
	 * The next four members are NULL if peers cannot map this kind of
	 * memory. If they are not NULL, near_device.queue() returns a region's
	 * state as the id of its device queue (stream). Therefore, if open()
	 * stores the same *state for two regions, start() must use the same
	 * queue for both.
	 */
	/* Describes memory for a peer's map(). -errno: peers cannot map it. */
	int (*export)(const void *state, const void *addr, size_t len,
		      struct near_export *export);
	/* As near_device.share(), for the allocation of the memory at addr. */
	int (*share)(const void *addr);
	/* As near_device.map(), with `state` in place of `device`. */
	int (*map)(void *state, const struct near_export *export, int fd,
		   struct near_map *map);
	/* Releases a mapping. May wait for the application's device work. */
	void (*unmap)(struct duo_device_handle *mapping);
};

/* cuda.c, rocr.c, ze.c */
extern const struct duo_device_iface duo_cuda_iface, duo_rocr_iface,
	duo_ze_iface;
/* Array of interfaces, with NULL at the end; tests replace it. */
extern const struct duo_device_iface *const *duo_device_ifaces;

/*
 * Returns the name of an unsupported interface whose library is loaded; NULL:
 * none.
 */
const char *duo_device_unsupported(void);
/*
 * Prepares copying from and to a region that the core has already registered.
 * Device memory: calls duo_device_list(). Host memory: tries to pin the region.
 * Stores in *open the region that the application must use: mr, or an open
 * region that duo_device_list() has found. In the second case the caller must
 * free mr. Returns 0 or an error, after which the caller must close mr.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			struct duo_mr **open);
/*
 * Waits for the region's copies, then undoes duo_device_register(). The region
 * must not be in the domain's tree: see duo_device_unlist().
 */
void duo_device_forget(struct duo_mr *mr);
/*
 * Adds a region to the domain's tree, if the region is device memory and has a
 * descriptor. The tree is sorted by descriptor: the caller must remove the
 * region before it changes mr_fid.mem_desc. Returns 0 or -FI_ENOMEM.
 *
 * A core with a cache of regions, such as efa without FI_MR_LOCAL, may return
 * a region that is already open. Then the tree keeps the struct of the earlier
 * registration. If `open` is not NULL, this function counts the new
 * registration in that struct, and stores the struct in *open.
 */
int duo_device_list(struct duo_mr *mr, struct duo_mr **open);
/*
 * Ends one registration of a region. Returns true if it was the last one: the
 * region is no longer in the domain's tree. False: the region has further
 * registrations (see duo_device_list()), and stays in the tree.
 */
bool duo_device_unlist(struct duo_mr *mr);
/*
 * Stores a description by which peers can map the region's memory. Returns 0;
 * or -errno if they cannot, or if the parameter gpu_ipc is off. Needs no lock.
 */
int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export);
/*
 * Releases a mapping that near_table_unmapped() has returned. The caller must
 * not hold the domain's lock, because this call may wait for the application's
 * work.
 */
void duo_device_unmap(void *mapping);

/* Functions for near. Their argument `device` is the region's struct duo_mr. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with this descriptor; NULL: none. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/*
 * Frees the domain's bounce buffer: the host memory through which
 * duo_device_out() and _in() copy.
 */
void duo_device_close(struct duo_domain *domain);
/* True if any buffer is device memory. desc: their descriptors, or NULL. */
bool duo_device_any(const struct duo_domain *domain, void *const *desc,
		    size_t count);
/*
 * Returns the result of duo_device_any(). If true, stores in handle[] each
 * buffer's argument `device` for duo_device_near; NULL: host memory.
 */
bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle);
/*
 * Copies the first len bytes of the buffers to `host`. Copies from device
 * memory through the domain's bounce buffer, and waits for the end of the copy.
 * Returns 0, -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
/* Copies len bytes from `host` to the buffers: reverse of duo_device_out(). */
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
