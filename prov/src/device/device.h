/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copies between a device and host memory. near
 * accesses host memory only, and needs these copies to carry messages and RMA
 * from and to device memory. The application passes the core's descriptors; the
 * descriptor identifies a region of device memory. A buffer in host memory has
 * no descriptor, or one that belongs to no such region.
 *
 * A table has a row of functions for each interface. fi_mr_regattr() prepares a
 * region for copies. A copy does not wait for the application's work on the
 * device, so it may be made while a lock is held that the application's
 * callbacks need. Copies for RMA are asynchronous; copies for messages end
 * before the call returns.
 *
 * Cost: without device memory, a branch for each message. With it, a search of
 * a tree for each buffer that has a descriptor, and for a message from or to
 * device memory a copy of 10 us and more. Lock: the domain's. The functions
 * register, forget, unlist and list take it; the functions below them must be
 * called with it held.
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
 * A copy that has not ended, or host memory that is pinned. Interfaces append
 * their own fields.
 */
struct duo_device_held {
	const struct duo_device_iface *iface;
};

struct duo_device_iface {
	enum fi_hmem_iface id;
	const char *name;	/* NULL: end of the table */
	const char *library;	/* library of the interface; if it is loaded,
				 * the process may use the interface */
	/*
	 * Prepares copies from and to the memory at addr, on the device in
	 * attr. Returns 0 or -errno, and a state for the functions below.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    void **state);
	/*
	 * Waits for the end of all copies from and to the region, then frees
	 * the state.
	 */
	void (*close)(void *state);
	/* As in struct near_device. Either "to" or "from" is device memory. */
	int (*start)(void *state, void *to, const void *from, size_t len,
		     struct duo_device_held **copy);
	int (*done)(struct duo_device_held *copy);
	struct duo_device_held *(*pin)(void *state, void *memory, size_t len);
	/* NULL if pin() always returns NULL. */
	void (*unpin)(struct duo_device_held *pin);
	/*
	 * The next three functions are for memory that other processes map.
	 * They are NULL if the interface does not support that. Regions have
	 * the same state if the device makes their copies in one queue.
	 * export() describes memory to other processes; it returns an error for
	 * memory that cannot be mapped. map() is as in struct near_device;
	 * map->mapping is a struct duo_device_held. unmap() may wait for the
	 * application's work on the device.
	 */
	int (*export)(const void *state, const void *addr, size_t len,
		      struct near_export *export);
	int (*map)(void *state, const struct near_export *export,
		   struct near_map *map);
	void (*unmap)(struct duo_device_held *mapping);
};

/*
 * The table of interfaces. An interface without start() is not supported. Tests
 * replace the table.
 */
extern const struct duo_device_iface *duo_device_ifaces;

/*
 * Returns the name of an unsupported interface whose library this process has
 * loaded; NULL: none.
 */
const char *duo_device_unsupported(void);
/*
 * Prepares a region for copies, after the core has registered it. Returns 0.
 * Returns -errno after a warning if the region must not be used.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr);
void duo_device_forget(struct duo_mr *mr);
/*
 * A region is listed by its descriptor. duo_device_unlist() must be called
 * before the core changes that descriptor, duo_device_list() afterwards. A
 * region without a descriptor is not listed. duo_device_list() returns 0, or
 * -FI_ENOMEM if it cannot list the region.
 */
void duo_device_unlist(struct duo_mr *mr);
int duo_device_list(struct duo_mr *mr);
/*
 * Describes a region's allocation to peers that map it. Returns -errno if that
 * is not possible, or if the parameter gpu_ipc is off. Needs no lock.
 */
int duo_device_export(const struct duo_mr *mr, const struct iovec *iov,
		      struct near_export *export);
/*
 * Releases a mapping of near. Must be called without the domain's lock, because
 * it may wait for the application's work on the device.
 */
void duo_device_unmap(void *mapping);

/* Copies for near; the argument "device" is the region's struct duo_mr. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with this descriptor; NULL: none. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/* Frees the host memory that the domain's copies go through. */
void duo_device_close(struct duo_domain *domain);
/*
 * True if any of the buffers is device memory. desc: descriptors of the
 * buffers, or NULL.
 */
bool duo_device_any(const struct duo_domain *domain, void *const *desc,
		    size_t count);
/*
 * Stores near's handle of each buffer, NULL for host memory. False: no buffer
 * is device memory, and handle may be unset.
 */
bool duo_device_handles(const struct duo_domain *domain, void *const *desc,
			size_t count, void **handle);
/*
 * Copy the first len bytes of the buffers to host memory, or from host memory.
 * The copies go through pinned memory of the domain, and have ended on return.
 * Return 0, -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
