/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copies from and to memory of AMD GPUs, by ROCr, the runtime of ROCm. Its
 * library is loaded when the first region is registered. The copies do not wait
 * for the application's queues. See device.h and stream.h. This code has not
 * run on a GPU: the tests use a stand-in for the library.
 */
#ifndef DUO_DEVICE_ROCR_H
#define DUO_DEVICE_ROCR_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_ROCR_LIBRARY "libhsa-runtime64.so.1"

/*
 * Name of the library. In tests it may be NULL; then this program's symbols are
 * used.
 */
extern const char *duo_rocr_library;

int duo_rocr_open(const struct fi_mr_attr *attr, const void *addr,
		  void **state);
struct duo_device_handle *duo_rocr_pin(void *state, void *memory, size_t len);
void duo_rocr_unpin(struct duo_device_handle *pin);

#endif /* DUO_DEVICE_ROCR_H */
