/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Device memory (FI_HMEM): copies between a device and host memory, so that
 * near, which reaches host memory only, carries messages and RMA of it. The
 * application has the core's descriptors; a region of device memory is found by
 * its descriptor. Host memory has none, or one that is not found.
 *
 * A row of the table for each interface has its calls. fi_mr_regattr() prepares
 * a region. Copies wait for no work of the application on the device, so they
 * may be made while a lock is held that the application's callbacks need. Those
 * for RMA are asynchronous; those for messages end before the call returns.
 *
 * Cost: a branch for each message where no device memory is; where there may be
 * some, a search of a tree for each buffer with a descriptor, and for a message
 * of device memory a copy, of 10 us and more. All under the domain's lock; the
 * first four functions take the lock.
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

/* A copy that has not ended, or host memory that is pinned. */
struct duo_device_held {
	const struct duo_device_iface *iface;
};

struct duo_device_iface {
	enum fi_hmem_iface id;
	const char *name;	/* NULL: end of the table */
	const char *library;	/* loaded: the process may use this interface */
	/*
	 * Prepares copies from and to the memory at addr, on the device that
	 * attr names. Returns 0 or -errno.
	 */
	int (*open)(const struct fi_mr_attr *attr, const void *addr,
		    void **state);
	/* Waits for the copies from and to the region first. */
	void (*close)(void *state);
	/* As in near_device; one of to and from is device memory. */
	int (*start)(void *state, void *to, const void *from, size_t len,
		     struct duo_device_held **copy);
	int (*done)(struct duo_device_held *copy);
	struct duo_device_held *(*pin)(void *state, void *memory, size_t len);
	void (*unpin)(struct duo_device_held *pin);
};

/* Rows without start() are not supported. A test has a table of its own. */
extern const struct duo_device_iface *duo_device_ifaces;

/*
 * Returns the name of an interface that this process has loaded and that is not
 * supported, or NULL.
 */
const char *duo_device_unsupported(void);
/*
 * Prepares a region that the core has registered. Returns 0 or, after a
 * warning, -errno: then the region is not usable.
 */
int duo_device_register(struct duo_mr *mr, const struct fi_mr_attr *attr);
void duo_device_forget(struct duo_mr *mr);
/*
 * Unlist a region before the core changes its descriptor, list it afterwards.
 * -FI_ENOMEM: not listed. A region without a descriptor cannot be listed.
 */
void duo_device_unlist(struct duo_mr *mr);
int duo_device_list(struct duo_mr *mr);

/* Copies for near, which gets the struct duo_mr as device region. */
extern const struct near_device duo_device_near;
/* Returns the region of device memory with that descriptor, or NULL. */
struct duo_mr *duo_device_find(const struct duo_domain *domain, void *desc);
/* Frees the memory that copies of the domain have gone through. */
void duo_device_close(struct duo_domain *domain);
/* True if one of the buffers is device memory; desc may be NULL. */
bool duo_device_any(const struct duo_domain *domain, void *const *desc,
		    size_t count);
/*
 * Copies the first len bytes of the buffers to host memory, and the other way,
 * through pinned memory of the domain. Return 0, -FI_EIO or -FI_ENOMEM.
 */
int duo_device_out(struct duo_domain *domain, void *host,
		   const struct iovec *iov, void *const *desc, size_t len);
int duo_device_in(struct duo_domain *domain, const struct iovec *iov,
		  void *const *desc, const void *host, size_t len);

#endif /* DUO_DEVICE_H */
