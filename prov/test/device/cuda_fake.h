/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The fake of CUDA's driver, for the tests of device/cuda.c. */
#ifndef CUDA_FAKE_H
#define CUDA_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* Defines a function of the library, which has no header. */
#define CALL(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

static const struct duo_device_iface *const cuda = &duo_cuda_iface;

#define PRIMARY 7		/* device whose primary context is retained */

extern void *current;		/* the current context */
extern int mappings, streams;
/*
 * allocation: device memory of this process; mapped: address at which the fake
 * maps it
 */
extern char allocation[256], mapped[256];
extern uint64_t buffer_id;
extern bool physical; /* the allocation is physical memory (cuMemCreate) */

void cuda_setup(void);
/* Asserts that nothing is left open. */
void cuda_teardown(void);
struct duo_stream *open_region(void);

#endif /* CUDA_FAKE_H */
