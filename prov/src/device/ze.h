/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copies from and to the memory of Intel GPUs, by Level Zero. Its library is
 * loaded when the first region is registered. ofi_duo has a context of its own
 * for each driver, and for each device a command list of its own, which does
 * not wait for the application's. If the device has a queue that executes copies
 * only, the list uses it: a kernel that waits for a message then does not block
 * the copy of that message. See device.h and stream.h. This code has not run on
 * a GPU: the tests use a stand-in for the library.
 */
#ifndef DUO_DEVICE_ZE_H
#define DUO_DEVICE_ZE_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "device/device.h"

#define DUO_ZE_LIBRARY "libze_loader.so.1"

/* Name of the library; NULL, in a test: the symbols of this program. */
extern const char *duo_ze_library;

int duo_ze_open(const struct fi_mr_attr *attr, const void *addr, void **state);
/*
 * Returns NULL: the driver pins host memory itself, for each copy. Level Zero
 * has no function that pins memory which it has not allocated.
 */
struct duo_device_held *duo_ze_pin(void *state, void *memory, size_t len);

#endif /* DUO_DEVICE_ZE_H */
