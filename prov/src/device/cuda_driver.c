/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <pthread.h>

#include "device/cuda.h"
#include "device/cuda_driver.h"
#include "device/library.h"

struct duo_cuda duo_cuda;

static const struct duo_symbol duo_cuda_symbols[] = {
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
};

static const struct duo_symbol duo_cuda_optional[] = {
	{ "cuMemGetAddressRange_v2", &duo_cuda.range },
	{ "cuIpcGetMemHandle", &duo_cuda.ipc_get },
	{ "cuIpcOpenMemHandle_v2", &duo_cuda.ipc_open },
	{ "cuIpcCloseMemHandle", &duo_cuda.ipc_close },
};

static const struct duo_symbol duo_cuda_handles[] = {
	{ "cuMemRetainAllocationHandle", &duo_cuda.handle_of },
	{ "cuMemGetAllocationPropertiesFromHandle", &duo_cuda.prop_of },
	{ "cuMemRelease", &duo_cuda.handle_close },
	{ "cuMemExportToShareableHandle", &duo_cuda.handle_export },
	{ "cuMemImportFromShareableHandle", &duo_cuda.handle_import },
	{ "cuMemAddressReserve", &duo_cuda.reserve },
	{ "cuMemAddressFree", &duo_cuda.unreserve },
	{ "cuMemMap", &duo_cuda.map },
	{ "cuMemUnmap", &duo_cuda.unmap },
	{ "cuMemSetAccess", &duo_cuda.access },
	{ "cuCtxGetDevice", &duo_cuda.device },
};

#define DUO_CUDA_LOAD(symbols) \
	duo_library_load(duo_cuda_library, symbols, \
			 sizeof(symbols) / sizeof(*(symbols)))

const char *duo_cuda_library = DUO_CUDA_LIBRARY;
static pthread_once_t duo_cuda_once = PTHREAD_ONCE_INIT;
static bool duo_cuda_there;

static void duo_cuda_load_once(void)
{
	const char *missing = DUO_CUDA_LOAD(duo_cuda_symbols);

	if (DUO_CUDA_LOAD(duo_cuda_optional))
		duo_cuda.range = NULL;
	if (DUO_CUDA_LOAD(duo_cuda_handles))
		duo_cuda.handle_of = NULL;
	duo_cuda_there = !missing && duo_cuda.init(0) == DUO_CUDA_SUCCESS;
	if (!duo_cuda_there)
		duo_library_warn(DUO_CUDA_LIBRARY, missing, "CUDA");
}

bool duo_cuda_load(void)
{
	pthread_once(&duo_cuda_once, duo_cuda_load_once);
	return duo_cuda_there;
}
