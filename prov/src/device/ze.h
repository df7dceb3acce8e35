/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copies from and to memory of Intel GPUs, by Level Zero. Its library is loaded
 * when the first region is registered. ofi_duo has a context for each driver
 * and a command list for each device. This list does not wait for the
 * application's lists. The list uses a queue for copies only, if the device has
 * one: then a kernel that waits for a message cannot block the copy of this
 * message. See device.h and stream.h. This code has not run on a GPU: the tests
 * use a stand-in for the library.
 */
#ifndef DUO_DEVICE_ZE_H
#define DUO_DEVICE_ZE_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_ZE_LIBRARY "libze_loader.so.1"

/*
 * Name of the library. In tests it may be NULL; then this program's symbols are
 * used.
 */
extern const char *duo_ze_library;

int duo_ze_open(const struct fi_mr_attr *attr, const void *addr, void **state);
/*
 * Returns NULL: Level Zero cannot pin memory that it has not allocated. The
 * driver itself pins host memory for each copy.
 */
struct duo_device_handle *duo_ze_pin(void *state, void *memory, size_t len);

#endif /* DUO_DEVICE_ZE_H */
