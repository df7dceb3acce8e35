/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copies from and to memory of NVIDIA GPUs, by the CUDA driver. The driver's
 * library is loaded when the first region is registered. ofi_duo has one stream
 * in each context. This stream does not wait for the application's streams,
 * because a kernel that waits for a message could then block the copy of this
 * message. See device.h.
 */
#ifndef DUO_DEVICE_CUDA_H
#define DUO_DEVICE_CUDA_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_CUDA_LIBRARY "libcuda.so.1"

/*
 * Name of the driver's library. In tests it may be NULL; then this program's
 * symbols are used.
 */
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

/*
 * cuda_map.c: allocations that other processes map, by CUDA's IPC, or by
 * descriptors of physical memory (cuMemCreate)
 */
int duo_cuda_export(const void *state, const void *addr, size_t len,
		    struct near_export *export);
int duo_cuda_share(const void *state, const void *addr);
int duo_cuda_map(void *state, const struct near_export *export, int fd,
		 struct near_map *map);
void duo_cuda_unmap(struct duo_device_handle *mapping);

#endif /* DUO_DEVICE_CUDA_H */
