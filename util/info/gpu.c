/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks that near can copy GPU memory. Without a driver, reports nothing. */

#include <dlfcn.h>
#include <unistd.h>

#include "info.h"

#define INFO_CUDA "libcuda.so.1"

/* Returns the number of GPUs, or the negated error of the CUDA driver API. */
static int info_gpus(void *library)
{
	int (*init)(unsigned int flags), (*count)(int *devices);
	int devices = 0, ret;

	*(void **) &init = dlsym(library, "cuInit");
	*(void **) &count = dlsym(library, "cuDeviceGetCount");
	if (!init || !count)
		return -1;
	ret = init(0);
	if (!ret)
		ret = count(&devices);
	return ret ? -ret : devices;
}

/*
 * Recognizes a driver by the kernel's files, which a container shows even if it
 * has no device.
 */
void info_check_gpu(void)
{
	bool driver = !access("/proc/driver/nvidia/version", F_OK);
	bool device = !access("/dev/nvidiactl", F_OK);
	void *library = dlopen(INFO_CUDA, RTLD_NOW);
	int gpus = library ? info_gpus(library) : 0;

	if (gpus > 0) {
		info_found("gpu", INFO_OK, "%d NVIDIA GPU%s: with FI_HMEM near "
			   "copies CUDA memory through host memory", gpus,
			   gpus > 1 ? "s" : "");
		return;
	}
	if (!driver && !device)
		return;
	info_found("gpu", INFO_WARNING, "the kernel has NVIDIA's driver, and "
		   "%s%s: near cannot copy CUDA memory", device ? "" :
		   "there is no /dev/nvidiactl, ",
		   library ? "the driver's library finds no GPU" :
			     INFO_CUDA " is not found");
	if (gpus < 0)
		info_remedy("cuInit failed with error %d. nvidia-smi may print "
			    "the cause", -gpus);
	else
		info_remedy("In a container: start it with its GPUs "
			    "(--gpus all, --nv). Otherwise check "
			    "CUDA_VISIBLE_DEVICES");
}
