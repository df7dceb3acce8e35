/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copying from and to the memory of a device, for near
 * (docs/objects.md). A buffer is device memory if its descriptor, which the
 * core assigns (fi_mr_desc(3)), is that of a region of device memory.
 *
 * A copy must not wait for the application's work on the device. That might be
 * a deadlock: the thread that waits for the copy holds the domain's lock, and a
 * callback of that work may wait for this lock.
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

/* First member of each interface's structs for copies, pins and mappings. */
struct duo_device_handle {
	const struct duo_device_iface *iface;
};

/* An interface of libfabric to device memory: enum fi_hmem_iface. */
struct duo_device_iface {
	enum fi_hmem_iface id;
	/* unsupported interfaces only: the name, and the library to look for */
	const char *name, *library;
	/*
	 * Prepares copying from and to the memory at addr. Stores the argument
	 * `state` of the functions below. Returns 0 or -errno.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    void **state);
	/* Waits for all copies from and to the region; releases the state. */
	void (*close)(void *state);
	/*
	 * The next four functions are as in struct near_device, with `state` in
	 * place of `device`. At least one of `to` and `from` is device memory.
	 * pin may be NULL.
	 */
	int (*start)(void *state, void *to, const void *from, size_t len,
		     struct duo_device_handle **copy);
	int (*done)(struct duo_device_handle *copy);
	struct duo_device_handle *(*pin)(void *state, void *memory, size_t len);
	void (*unpin)(struct duo_device_handle *pin);
	/*
	 * True if pin() or the application has pinned this host memory. May be
	 * NULL; otherwise pin() must accept NULL as the state of host regions.
	 */
	bool (*pinned)(void *state, const void *memory, size_t len);
	/*
	 * The next four members are NULL if peers cannot map this kind of
	 * memory. Otherwise, regions with equal states must have one device
	 * queue, because near_device.queue() returns the state as the queue's
	 * id. share() and map() are as in struct near_device.
	 */
	/* Describes memory for a peer's map(). -errno: peers cannot map it. */
	int (*export)(const void *state, const void *addr, size_t len,
		      struct near_export *export);
	int (*share)(const void *addr);
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

/* Returns the name of an unsupported interface that is in use; or NULL. */
const char *duo_device_unsupported(void);
/*
 * Prepares copying from and to a region that the core has registered. Pins host
 * memory if possible, and lists device memory. Stores in *open the region that
 * the application must use: mr, or an open region that duo_device_list() has
 * found; the caller must then free mr. Returns 0 or an error, after which the
 * caller must close mr.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			struct duo_mr **open);
/*
 * Waits for the region's copies, then undoes duo_device_register(). Must be
 * called after duo_device_unlist().
 */
void duo_device_forget(struct duo_mr *mr);
/*
 * Adds a region of device memory to the domain's tree, which is sorted by
 * descriptor: mr_fid.mem_desc must not change while the region is in the tree.
 * Returns 0 or -FI_ENOMEM.
 *
 * A core with a cache of regions, such as efa without FI_MR_LOCAL, may return
 * the core's region of an earlier registration. The tree then keeps the earlier
 * struct. If `open` is not NULL, counts the new registration in the earlier
 * struct, and stores this struct in *open.
 */
int duo_device_list(struct duo_mr *mr, struct duo_mr **open);
/*
 * Ends one registration of a region. Returns true if it was the last one: the
 * region is no longer in the domain's tree.
 */
bool duo_device_unlist(struct duo_mr *mr);
/*
 * Stores a description by which peers can map the region's memory. Returns 0;
 * -errno: they cannot, or the parameter gpu_ipc is off. Needs no lock.
 */
int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export);
/*
 * Releases a mapping that near_table_unmapped() has returned. The caller must
 * not hold the domain's lock, because the call may wait for the application's
 * work.
 */
void duo_device_unmap(void *mapping);

/* Functions for near. Their argument `device` is the region's struct duo_mr. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with this descriptor; NULL: none. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/* Frees the bounce buffer of duo_device_out() and duo_device_in(). */
void duo_device_close(struct duo_domain *domain);
/* True if any buffer is device memory. desc: their descriptors, or NULL. */
bool duo_device_any(const struct duo_domain *domain, void *const *desc,
		    size_t count);
/*
 * Returns the result of duo_device_any(). If true, stores each buffer's handle
 * for duo_device_near; NULL: host memory.
 */
bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle);
/*
 * Copies the first len bytes of the buffers to `host`: from device memory
 * through the domain's bounce buffer. Waits for the end of the copy. Returns 0,
 * -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
/* Copies len bytes from `host` to the buffers: reverse of duo_device_out(). */
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
