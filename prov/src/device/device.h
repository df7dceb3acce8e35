/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copying from and to the memory of a device such as a
 * GPU, for near, the local transport (docs/objects.md). A message has a
 * descriptor for each buffer. The core, that is, the wrapped provider, has
 * assigned the descriptor to a memory region (fi_mr_desc(3)). A buffer is
 * device memory if its descriptor is that of a region of device memory.
 *
 * A copy must not wait for the application's work on the device, because this
 * might be a deadlock: the thread that waits for the copy holds the domain's
 * lock, and a callback of the application's work may wait for the same lock.
 *
 * Cost: if the application has no device memory, one branch per message.
 * Otherwise, a search in a tree for each buffer with a descriptor, and at least
 * 6 us for each message from or to device memory.
 *
 * Lock: the lock of the domain (duo_domain.group.lock). duo_device_register(),
 * duo_device_list() and duo_device_unlist() take it. The caller must hold it
 * for the functions duo_device_find(), _handles(), _out() and _in(),
 * and for those of duo_device_near.
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
struct duo_stream;

/*
 * First member of the structs by which an interface represents pinned host
 * memory or a mapping of a peer's memory.
 */
struct duo_device_handle {
	/* Unpins or unmaps. Might wait for the application's device work. */
	void (*release)(struct duo_device_handle *handle);
};

/* An interface of libfabric to device memory: enum fi_hmem_iface. */
struct duo_device_iface {
	enum fi_hmem_iface id;
	/*
	 * only of an interface that ofi_duo does not support: its name, and the
	 * library that a process has loaded if it uses this interface
	 */
	const char *name, *library;
	/*
	 * Prepares copying from and to a region with the address addr: opens
	 * the stream (stream.h) for its copies. Returns 0 or -errno.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    struct duo_stream **stream);
	/* Implements near_device.pin(). May be NULL. */
	struct duo_device_handle *(*pin)(struct duo_stream *stream,
					 void *memory, size_t len);
	/*
	 * True if pin() or the application has pinned this host memory. The
	 * member `pinned` may be NULL. If it is not NULL, ofi_duo calls pin()
	 * also for regions of host memory, with NULL as the stream.
	 */
	bool (*pinned)(const struct duo_stream *stream, const void *memory,
		       size_t len);
	/*
	 * The next three members are NULL if peers cannot map this kind of
	 * memory. If they are not NULL, the copies of a stream must be in one
	 * device queue, because near_device.queue() returns the stream as the
	 * id of the queue. near_device describes share() and map().
	 */
	/*
	 * Stores a description of the memory for a peer's map(). Returns 0;
	 * -errno: peers cannot map this memory.
	 */
	int (*export)(const struct duo_stream *stream, const void *addr,
		      size_t len, struct near_export *export);
	int (*share)(const void *addr);
	int (*map)(struct duo_stream *stream, const struct near_export *export,
		   int fd, struct near_map *map);
};

/* cuda.c, rocr.c, ze.c */
extern const struct duo_device_iface duo_cuda_iface, duo_rocr_iface,
	duo_ze_iface;
/* Array of interfaces, with NULL at the end; tests replace it. */
extern const struct duo_device_iface *const *duo_device_ifaces;

/*
 * Returns the name of an interface that this process uses (its library is
 * loaded) and that ofi_duo does not support; NULL: none.
 */
const char *duo_device_unsupported(void);
/*
 * Prepares copying from and to a region that the core has registered. If the
 * region is host memory, pins it if possible. If it is device memory, calls
 * duo_device_list(). Stores in *open the region that the application must use:
 * mr, or an open region that duo_device_list() has found. In the second case
 * the caller must free mr. Returns 0 or an error, after which the caller must
 * close mr.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			struct duo_mr **open);
/*
 * Waits for the region's copies, then undoes duo_device_register(). Must be
 * called after duo_device_unlist().
 */
void duo_device_forget(struct duo_mr *mr);
/*
 * Adds a region of device memory to the domain's tree. Returns 0 or -FI_ENOMEM.
 * The tree is sorted by descriptor, so mr_fid.mem_desc must not change while
 * the region is in the tree.
 *
 * A core with a cache of regions, such as efa without FI_MR_LOCAL, may return
 * for a new registration the region of an earlier one. In this case the tree
 * keeps the struct duo_mr of the earlier registration. If `open` is not NULL,
 * also counts the new registration in that struct, and stores it in *open.
 */
int duo_device_list(struct duo_mr *mr, struct duo_mr **open);
/*
 * Ends one registration of a region. True: it was the last one, and the region
 * is no longer in the domain's tree.
 */
bool duo_device_unlist(struct duo_mr *mr);
/*
 * Stores a description by which peers can map the region's memory. Returns 0;
 * -errno: peers cannot map it, or the parameter gpu_ipc is off. The caller need
 * not hold the domain's lock.
 */
int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export);
/*
 * Releases a struct duo_device_handle: pinned memory, or a mapping that
 * near_table_unmapped() has returned. For a mapping, the caller must not hold
 * the domain's lock, because the call might wait for the application's work on
 * the device.
 */
void duo_device_release(void *handle);

/* Functions for near. Their argument `device` is the region's struct duo_mr. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with this descriptor; NULL: none. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/* Frees the bounce buffer of duo_device_out() and duo_device_in(). */
void duo_device_close(struct duo_domain *domain);
/*
 * True if any of `count` buffers is device memory. In this case, unless handle
 * is NULL, stores each buffer's handle for duo_device_near; NULL: the buffer is
 * host memory. desc: descriptors of the buffers; NULL: they have none.
 */
bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle);
/*
 * Copies the first len bytes of the buffers to `host`. Bytes of device memory
 * go through the domain's bounce buffer. Waits for the end of the copy. Returns
 * 0, -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
/* Copies len bytes from `host` to the buffers: reverse of duo_device_out(). */
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
