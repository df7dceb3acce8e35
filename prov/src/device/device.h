/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copies from and to the memory of a device. near's
 * own code accesses only host memory; it carries messages and RMA of device
 * memory by these copies. The application passes the core's descriptors. The
 * descriptor shows whether a buffer is in device memory: a buffer in host
 * memory has no descriptor, or that of a region of host memory.
 *
 * The table duo_device_ifaces has a row of functions for each interface, such
 * as CUDA. fi_mr_regattr() prepares a region for copies. Copies for RMA, by
 * which messages are fetched, are asynchronous. Copies for other messages, such
 * as short ones from host memory, end before the call returns. A thread may
 * hold the domain's lock while it waits for a copy. So a copy must not wait for
 * the application's work on the device: a callback of that work may call
 * libfabric, and wait for the same lock.
 *
 * Cost: without device memory, a branch for each message. With device memory, a
 * search in a tree for each buffer with a descriptor, and a copy of at least 6
 * us for each message from or to device memory.
 *
 * Lock: the domain's (duo_domain.group.lock). duo_device_register(), _forget(),
 * _unlist() and _list() take it. The caller must hold it for _find(), _any(),
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

/*
 * A pending copy, pinned memory or a mapping. The structs of the interfaces
 * begin with this one.
 */
struct duo_device_handle {
	const struct duo_device_iface *iface;
};

struct duo_device_iface {
	enum fi_hmem_iface id;
	const char *name;	/* NULL: end of the table */
	/* the interface's library, loaded in processes that use it */
	const char *library;
	/*
	 * Prepares copies from and to the memory at addr, on the device in
	 * attr. Returns 0 or -errno. Stores in *state an argument for the
	 * functions below.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    void **state);
	/* Waits for all copies from and to the region; releases the state. */
	void (*close)(void *state);
	/*
	 * The next four functions are as in struct near_device, but start() and
	 * pin() take a state in place of a device. `to`, `from` or both are
	 * device memory.
	 */
	int (*start)(void *state, void *to, const void *from, size_t len,
		     struct duo_device_handle **copy);
	int (*done)(struct duo_device_handle *copy);
	struct duo_device_handle *(*pin)(void *state, void *memory, size_t len);
	/* NULL if pin() always returns NULL. */
	void (*unpin)(struct duo_device_handle *pin);
	/*
	 * True if copies can access this host memory, because pin() or the
	 * application has pinned it. NULL: not supported. If an interface has
	 * this function, its pin() also accepts NULL in place of a state.
	 */
	bool (*pinned)(void *state, const void *memory, size_t len);
	/*
	 * The next four functions are for memory that other processes map;
	 * NULL if the interface does not support this. Regions with the same
	 * state have their copies in one queue of the device.
	 * - export() stores a description by which other processes can map the
	 *   memory. It returns an error if they cannot map this memory.
	 * - share() and map() are as in struct near_device. map->mapping is a
	 *   struct duo_device_handle.
	 * - unmap() may wait for the application's work on the device.
	 */
	int (*export)(const void *state, const void *addr, size_t len,
		      struct near_export *export);
	int (*share)(const void *state, const void *addr);
	int (*map)(void *state, const struct near_export *export, int fd,
		   struct near_map *map);
	void (*unmap)(struct duo_device_handle *mapping);
};

/*
 * The table of interfaces. An interface without start() is not supported. Tests
 * replace the table.
 */
extern const struct duo_device_iface *duo_device_ifaces;

/*
 * Returns the name of an interface without start() whose library this process
 * has loaded; NULL: none. near cannot copy memory of such an interface.
 */
const char *duo_device_unsupported(void);
/*
 * Prepares a region for copies, and calls duo_device_list(). Must be called
 * after the core has registered the region. Returns 0 or -errno. After an error
 * the region must not be used.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr,
			struct duo_mr **open);
/*
 * Waits for the region's copies, and undoes duo_device_register(). The region
 * must not be in the tree.
 */
void duo_device_forget(struct duo_mr *mr);
/*
 * duo_device_list() adds a region to the domain's tree of regions, and
 * duo_device_unlist() removes it. The tree is sorted by descriptor, so a caller
 * that makes the core change a region's descriptor must remove the region
 * before, and add it afterwards. Only regions of device memory that have a
 * descriptor are in the tree.
 *
 * A core with a cache of regions, such as efa without FI_MR_LOCAL, returns an
 * open region again if it contains the memory. Descriptors then cannot
 * distinguish the registrations. So duo_device_list() counts a further
 * registration of the region that is in the tree, and stores this region in
 * *open. Otherwise, or if open is NULL, it stores nothing. Returns 0 or
 * -FI_ENOMEM.
 *
 * duo_device_unlist() ends one registration. False: the region has another one,
 * and stays in the tree.
 */
int duo_device_list(struct duo_mr *mr, struct duo_mr **open);
bool duo_device_unlist(struct duo_mr *mr);
/*
 * Stores a description by which peers can map the region's allocation. Returns
 * 0, or -errno if peers cannot map the allocation, or if the parameter gpu_ipc
 * is off. Needs no lock.
 */
int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export);
/*
 * Releases a mapping that near_table_unmapped() has returned. Must be called
 * without the domain's lock, because the release may wait for the application's
 * work on the device.
 */
void duo_device_unmap(void *mapping);

/* Copies for near; the argument "device" is the region's struct duo_mr. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with this descriptor; NULL: none. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/* Frees the host memory through which duo_device_out() and _in() copy. */
void duo_device_close(struct duo_domain *domain);
/* True if any buffer is device memory. desc: descriptors; may be NULL. */
bool duo_device_any(const struct duo_domain *domain, void *const *desc,
		    size_t count);
/*
 * True if any buffer is device memory. Then handle[] has each buffer's handle
 * for near_device; NULL for host memory. After false, handle[] may be unset.
 */
bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle);
/*
 * duo_device_out() copies the first len bytes of the buffers to `host`.
 * duo_device_in() copies len bytes from `host` to the buffers. Copies of device
 * memory go through pinned memory of the domain and end before the call
 * returns. Return 0, -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
