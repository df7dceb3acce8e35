/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of Intel GPUs by Level Zero: see device.h and
 * stream.h. The first registration of a region loads the library. Tested with a
 * stand-in for the library, not on a GPU.
 *
 * ofi_duo has a context per driver and a command list per device. If the device
 * has a queue that only copies, the list uses this queue. Such a queue does not
 * wait for kernels, which may wait for messages.
 */
#ifndef DUO_DEVICE_ZE_H
#define DUO_DEVICE_ZE_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_ZE_LIBRARY "libze_loader.so.1"

/* Name of the library. Tests set NULL, to use their own functions. */
extern const char *duo_ze_library;

int duo_ze_open(const struct fi_mr_attr *attr, const void *addr, void **state);
/* Always returns NULL: Level Zero cannot pin. Its driver pins for each copy. */
struct duo_device_handle *duo_ze_pin(void *state, void *memory, size_t len);

#endif /* DUO_DEVICE_ZE_H */
