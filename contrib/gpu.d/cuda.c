/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dlfcn.h>
#include <string.h>

#include "duogpu.h"

struct gpu_cuda cuda;
int gpu_device;
static int gpu_devices;
static void *gpu_context;

static const struct {
	const char *name;
	void *call; /* address of the function's pointer in "cuda" */
} gpu_symbols[] = {
	{ "cuInit", &cuda.init },
	{ "cuDeviceGetCount", &cuda.count },
	{ "cuDeviceGetName", &cuda.name },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuCtxSetCurrent", &cuda.current },
	{ "cuMemAlloc_v2", &cuda.alloc },
	{ "cuMemAllocAsync", &cuda.alloc_pool },
	{ "cuMemAllocManaged", &cuda.alloc_managed },
	{ "cuMemAddressReserve", &cuda.reserve },
	{ "cuMemCreate", &cuda.create },
	{ "cuMemMap", &cuda.map },
	{ "cuMemSetAccess", &cuda.access },
	{ "cuMemcpyDtoH_v2", &cuda.out },
	{ "cuMemcpyHtoD_v2", &cuda.in },
	{ "cuMemcpyAsync", &cuda.copy },
	{ "cuMemcpyPeerAsync", &cuda.copy_peer },
	{ "cuCtxSynchronize", &cuda.wait },
	{ "cuCtxEnablePeerAccess", &cuda.peer },
	{ "cuMemAllocHost_v2", &cuda.host },
};

static void gpu_skip(const char *why)
{
	printf("skipped: %s\n", why);
	fflush(stdout);
	exit(GPU_SKIP);
}

void gpu_cuda_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	char name[128] = "";
	size_t i;

	if (!lib)
		gpu_skip("no libcuda.so.1");
	for (i = 0; i < sizeof(gpu_symbols) / sizeof(*gpu_symbols); i++)
		*(void **) gpu_symbols[i].call =
			dlsym(lib, gpu_symbols[i].name);
	if (cuda.init(0) || cuda.count(&gpu_devices) || !gpu_devices)
		gpu_skip("no GPU");
	gpu_device = gpu.rank % gpu_devices;
	GPU_OK(cuda.retain(&gpu_context, gpu_device));
	GPU_OK(cuda.current(gpu_context));
	GPU_OK(cuda.name(name, sizeof(name), gpu_device));
	printf("rank %d: GPU %d of %d, %s\n", gpu.rank, gpu_device,
	       gpu_devices, name);
	fflush(stdout);
}

/*
 * Allocates len bytes by cuMemCreate, and stores their address in *at. shared:
 * other processes can map the memory by a file descriptor. The structures have
 * the layout of CUmemAllocationProp (with CUmemLocation) and CUmemAccessDesc.
 */
static int gpu_cuda_vmm(uint64_t *at, size_t len, bool shared)
{
	struct {
		int type, handles;
		struct { int type, id; } location;
		void *win32;
		uint8_t flags[8];
	} prop = { .type = 1, .handles = shared, .location = { 1, gpu_device } };
	struct { int type, id, flags; } desc = { 1, gpu_device, 3 };
	uint64_t handle;
	int ret = cuda.reserve(at, len, 0, 0, 0);

	if (!ret)
		ret = cuda.create(&handle, len, &prop, 0);
	if (!ret)
		ret = cuda.map(*at, len, 0, handle, 0);
	return ret ? ret : cuda.access(*at, len, &desc, 1);
}

char *gpu_cuda_alloc(const char *kind, size_t len)
{
	uint64_t at = 0;
	int ret;

	if (!strcmp(kind, "pool"))
		ret = cuda.alloc_pool ? cuda.alloc_pool(&at, len, NULL) : -1;
	else if (!strcmp(kind, "managed"))
		ret = cuda.alloc_managed ? cuda.alloc_managed(&at, len, 1) : -1;
	else if (!strcmp(kind, "vmm") || !strcmp(kind, "private"))
		ret = cuda.reserve ? gpu_cuda_vmm(&at, len, *kind == 'v') : -1;
	else
		ret = cuda.alloc(&at, len);
	/*
	 * With STANDIN_FAIL=N, the N-th call of the stand-in for the driver
	 * (standin.c) fails, and no other call, so the second attempt succeeds.
	 */
	if (ret && getenv("STANDIN_FAIL"))
		return gpu_cuda_alloc(kind, len);
	if (ret)
		gpu_skip("this driver has no such memory");
	GPU_OK(cuda.wait());
	return (char *) (uintptr_t) at;
}

bool gpu_cuda_other(struct gpu_other *other, size_t len)
{
	if (gpu_devices < 2)
		return false;
	GPU_OK(cuda.retain(&other->context, !gpu_device));
	GPU_OK(cuda.current(other->context));
	GPU_OK(cuda.alloc(&other->at, len));
	GPU_OK(cuda.current(gpu_context));
	/* on failure the driver copies between the GPUs by host memory */
	cuda.peer(other->context, 0);
	other->mine = gpu_context;
	return true;
}
