/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Loads the CUDA driver's library. */

#include <dlfcn.h>
#include <pthread.h>

#include "base/log.h"
#include "device/cuda.h"
#include "device/cuda_driver.h"

struct duo_cuda duo_cuda;

static const struct {
	const char *name;
	/* address of the member of duo_cuda for the function */
	void *call;
} duo_cuda_symbols[] = {
	{ "cuInit", &duo_cuda.init },
	{ "cuPointerGetAttribute", &duo_cuda.pointer },
	{ "cuPointerSetAttribute", &duo_cuda.pointer_set },
	{ "cuDevicePrimaryCtxRetain", &duo_cuda.retain },
	{ "cuDevicePrimaryCtxRelease_v2", &duo_cuda.release },
	{ "cuCtxPushCurrent_v2", &duo_cuda.push },
	{ "cuCtxPopCurrent_v2", &duo_cuda.pop },
	{ "cuStreamCreate", &duo_cuda.stream_open },
	{ "cuStreamDestroy_v2", &duo_cuda.stream_close },
	{ "cuMemcpyAsync", &duo_cuda.copy },
	{ "cuStreamSynchronize", &duo_cuda.wait },
	{ "cuEventCreate", &duo_cuda.event_open },
	{ "cuEventDestroy_v2", &duo_cuda.event_close },
	{ "cuEventRecord", &duo_cuda.record },
	{ "cuEventQuery", &duo_cuda.query },
	{ "cuMemHostRegister_v2", &duo_cuda.pin },
	{ "cuMemHostUnregister", &duo_cuda.unpin },
	{ "cuMemGetAddressRange_v2", &duo_cuda.range },
	{ "cuIpcGetMemHandle", &duo_cuda.ipc_get },
	{ "cuIpcOpenMemHandle_v2", &duo_cuda.ipc_open },
	{ "cuIpcCloseMemHandle", &duo_cuda.ipc_close },
};

#define DUO_CUDA_SYMBOLS (sizeof(duo_cuda_symbols) / sizeof(*duo_cuda_symbols))
#define DUO_CUDA_OPTIONAL 4	/* number of optional functions at the end */

const char *duo_cuda_library = DUO_CUDA_LIBRARY;
static pthread_once_t duo_cuda_once = PTHREAD_ONCE_INIT;
static bool duo_cuda_there;

/* Sets all optional functions to NULL if one of them is missing. */
static void duo_cuda_check_optional(void)
{
	if (duo_cuda.range && duo_cuda.ipc_get && duo_cuda.ipc_open &&
	    duo_cuda.ipc_close)
		return;
	duo_cuda.range = NULL;
	duo_cuda.ipc_get = NULL;
	duo_cuda.ipc_open = NULL;
	duo_cuda.ipc_close = NULL;
}

/* Loads the library for good, because the application uses it as well. */
static void duo_cuda_load_once(void)
{
	void *library = dlopen(duo_cuda_library, RTLD_NOW | RTLD_LOCAL);
	const char *missing = library ? NULL : "the library";
	void *call;
	size_t i;

	for (i = 0; library && i < DUO_CUDA_SYMBOLS; i++) {
		call = dlsym(library, duo_cuda_symbols[i].name);
		if (!call && i < DUO_CUDA_SYMBOLS - DUO_CUDA_OPTIONAL)
			missing = duo_cuda_symbols[i].name;
		*(void **) duo_cuda_symbols[i].call = call;
	}
	duo_cuda_check_optional();
	duo_cuda_there = !missing && duo_cuda.init(0) == DUO_CUDA_SUCCESS;
	if (!duo_cuda_there)
		DUO_WARN(MR, "%s: %s%s: messages from and to CUDA memory will "
			 "fail. Install the driver's library, or set "
			 "FI_OFI_DUO_LOCAL=off\n", DUO_CUDA_LIBRARY,
			 missing ? "no " : "", missing ? missing : "no device");
}

bool duo_cuda_load(void)
{
	pthread_once(&duo_cuda_once, duo_cuda_load_once);
	return duo_cuda_there;
}
