/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of NVIDIA GPUs by the CUDA driver: see device.h.
 * The first registration of a region loads the driver's library. ofi_duo has
 * one stream per context. This stream does not wait for the application's
 * streams, in which a kernel may wait for a message.
 */
#ifndef DUO_DEVICE_CUDA_H
#define DUO_DEVICE_CUDA_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_CUDA_LIBRARY "libcuda.so.1"

/* Name of the driver's library. Tests set NULL, to use their own functions. */
extern const char *duo_cuda_library;

int duo_cuda_open(const struct fi_mr_attr *attr, const void *addr,
		  void **state);
void duo_cuda_close(void *state);
int duo_cuda_start(void *state, void *to, const void *from, size_t len,
		   struct duo_device_handle **copy);
int duo_cuda_done(struct duo_device_handle *copy);
struct duo_device_handle *duo_cuda_pin(void *state, void *memory, size_t len);
void duo_cuda_unpin(struct duo_device_handle *pin);
bool duo_cuda_pinned(void *state, const void *memory, size_t len);

/* cuda_map.c: exports of allocations, and mappings of peers' allocations */
int duo_cuda_export(const void *state, const void *addr, size_t len,
		    struct near_export *export);
int duo_cuda_share(const void *state, const void *addr);
int duo_cuda_map(void *state, const struct near_export *export, int fd,
		 struct near_map *map);
void duo_cuda_unmap(struct duo_device_handle *mapping);

#endif /* DUO_DEVICE_CUDA_H */
