/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of AMD GPUs by ROCr, the runtime of ROCm: see
 * device.h and stream.h. The first registration of a region loads the library.
 * The copies do not wait for the application's queues. Tested with a stand-in
 * for the library, not on a GPU.
 */
#ifndef DUO_DEVICE_ROCR_H
#define DUO_DEVICE_ROCR_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_ROCR_LIBRARY "libhsa-runtime64.so.1"

/* Name of the library. Tests set NULL, to use their own functions. */
extern const char *duo_rocr_library;

int duo_rocr_open(const struct fi_mr_attr *attr, const void *addr,
		  void **state);
struct duo_device_handle *duo_rocr_pin(void *state, void *memory, size_t len);
void duo_rocr_unpin(struct duo_device_handle *pin);

#endif /* DUO_DEVICE_ROCR_H */
