/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks that near can copy GPU memory, and how processes can map it. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

#define INFO_CUDA "libcuda.so.1"
/* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
#define INFO_CUDA_DESCRIPTORS 103
#define INFO_CUDA_BYTES 4096	/* size of the memory that is allocated */

/* The CUDA driver API. Its functions return 0 or an error of the API. */
static struct info_cuda {
	int (*init)(unsigned int flags);
	int (*count)(int *gpus);
	int (*device)(int *gpu, int ordinal);
	int (*name)(char *name, int size, int gpu);
	int (*attribute)(int *value, int attribute, int gpu);
	int (*peer)(int *access, int gpu, int peer);
	int (*retain)(void **context, int gpu);
	int (*release)(int gpu);
	int (*current)(void *context);
	int (*alloc)(uint64_t *at, size_t len);
	int (*free)(uint64_t at);
	int (*ipc)(void *handle, uint64_t at);
} cuda;

static const struct {
	const char *name;
	void *call;	/* address of the function's pointer in "cuda" */
} info_cuda_symbols[] = {
	{ "cuInit", &cuda.init },
	{ "cuDeviceGetCount", &cuda.count },
	{ "cuDeviceGet", &cuda.device },
	{ "cuDeviceGetName", &cuda.name },
	{ "cuDeviceGetAttribute", &cuda.attribute },
	{ "cuDeviceCanAccessPeer", &cuda.peer },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.release },
	{ "cuCtxSetCurrent", &cuda.current },
	{ "cuMemAlloc_v2", &cuda.alloc },
	{ "cuMemFree_v2", &cuda.free },
	{ "cuIpcGetMemHandle", &cuda.ipc },
};

/*
 * Returns the number of GPUs, or -1. On -1, *failed names the failed function,
 * and *err has its error, or 0 if the library lacks the function.
 */
static int info_gpus(void *library, const char **failed, int *err)
{
	int gpus = 0;
	size_t i;

	for (i = 0; i < sizeof(info_cuda_symbols) / sizeof(*info_cuda_symbols);
	     i++) {
		void *call = dlsym(library, info_cuda_symbols[i].name);

		*failed = info_cuda_symbols[i].name;
		if (!call)
			return -1;
		*(void **) info_cuda_symbols[i].call = call;
	}
	*failed = "cuInit";
	*err = cuda.init(0);
	if (!*err) {
		*failed = "cuDeviceGetCount";
		*err = cuda.count(&gpus);
	}
	return *err ? -1 : gpus;
}

/* Gets a handle for CUDA IPC. Returns 0, or the error of function *failed. */
static int info_gpu_ipc(int gpu, const char **failed)
{
	uint64_t at = 0, handle[8];	/* CUipcMemHandle has 64 bytes */
	void *context;
	int ret = cuda.retain(&context, gpu);

	*failed = "cuDevicePrimaryCtxRetain";
	if (ret)
		return ret;
	*failed = "cuMemAlloc";
	ret = cuda.current(context);
	if (!ret)
		ret = cuda.alloc(&at, INFO_CUDA_BYTES);
	if (!ret) {
		*failed = "cuIpcGetMemHandle";
		ret = cuda.ipc(handle, at);
		cuda.free(at);
	}
	cuda.current(NULL);
	cuda.release(gpu);
	return ret;
}

/*
 * Numbers of the other GPUs, as text. can: GPUs with memory that this GPU can
 * access; cannot: all others
 */
struct info_peers {
	char can[128], cannot[128];
};

static void info_gpu_peers(int ordinal, int gpu, int gpus,
			   struct info_peers *peers)
{
	int i, peer, access;
	char *list;
	size_t len;

	for (i = 0; i < gpus; i++) {
		if (i == ordinal)
			continue;
		access = 0;
		if (cuda.device(&peer, i) || cuda.peer(&access, gpu, peer))
			access = 0;
		list = access ? peers->can : peers->cannot;
		len = strlen(list);
		snprintf(list + len, sizeof(peers->can) - len, " %d", i);
	}
}

/*
 * Reports how processes can map a GPU's memory, and which other GPUs' memory
 * this GPU can access.
 */
static void info_found_gpu(int ordinal, int gpu, int gpus)
{
	struct info_peers peers = { "", "" };
	const char *failed;
	char name[96] = "NVIDIA";
	int fds = 0, ret = info_gpu_ipc(gpu, &failed);

	if (cuda.attribute(&fds, INFO_CUDA_DESCRIPTORS, gpu))
		fds = 0;
	cuda.name(name, sizeof(name), gpu);
	info_gpu_peers(ordinal, gpu, gpus, &peers);
	info_found("gpu", ret ? INFO_WARNING :
		   !fds || peers.cannot[0] ? INFO_NOTE : INFO_OK,
		   "GPU %d, %s: mapped by %s%s%s%s%s", ordinal, name,
		   ret && !fds ? "no other process" :
		   ret ? "descriptors (cuMemCreate), not by CUDA IPC" :
		   fds ? "CUDA IPC and descriptors (cuMemCreate)" : "CUDA IPC",
		   peers.can[0] ? "; access to the memory of GPU" : "",
		   peers.can,
		   peers.cannot[0] ? "; no access to the memory of GPU" : "",
		   peers.cannot);
	if (ret)
		info_remedy("%s failed with error %d: near copies memory of "
			    "cudaMalloc through host memory. Check free memory, "
			    "compute mode and MIG by nvidia-smi", failed, ret);
}

static void info_found_gpus(int gpus)
{
	int i, gpu;

	info_found("gpu", INFO_OK, "%d NVIDIA GPU%s: with FI_HMEM near copies "
		   "CUDA memory", gpus, gpus > 1 ? "s" : "");
	for (i = 0; i < gpus; i++)
		if (!cuda.device(&gpu, i))
			info_found_gpu(i, gpu, gpus);
}

/*
 * Checks the driver and the GPUs. Reports nothing if the kernel has no driver.
 * The driver's file in /proc exists even in a container without GPUs: there the
 * check reports a warning.
 */
void info_check_gpu(void)
{
	bool driver = !access("/proc/driver/nvidia/version", F_OK);
	bool device = !access("/dev/nvidiactl", F_OK);
	bool uvm = !access("/dev/nvidia-uvm", F_OK);
	void *library = dlopen(INFO_CUDA, RTLD_NOW);
	const char *failed = NULL;
	int err = 0, gpus = library ? info_gpus(library, &failed, &err) : 0;

	if (gpus > 0) {
		info_found_gpus(gpus);
		return;
	}
	if (!driver && !device)
		return;
	info_found("gpu", INFO_WARNING, "the kernel has NVIDIA's driver, and "
		   "%s%s%s: near cannot copy CUDA memory", device ? "" :
		   "there is no /dev/nvidiactl, ",
		   uvm ? "" : "there is no /dev/nvidia-uvm, ",
		   !library ? INFO_CUDA " is not found" :
		   gpus < 0 && !err ? "the driver's library lacks a function" :
				      "the driver's library finds no GPU");
	if (err)
		info_remedy("%s failed with error %d. nvidia-smi may print "
			    "the cause", failed, err);
	else if (gpus < 0)
		info_remedy(INFO_CUDA " lacks %s: it is too old, or not "
			    "NVIDIA's. Install the library of the driver that "
			    "the kernel has loaded", failed);
	else
		info_remedy("In a container: start it with its GPUs "
			    "(--gpus all, --nv). Otherwise check "
			    "CUDA_VISIBLE_DEVICES");
}
