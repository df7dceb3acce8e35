/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of AMD GPUs by ROCr, the runtime of ROCm. Copies
 * do not wait for the application's queues. This file is not tested on a GPU.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/rocr_driver.h"
#include "device/stream.h"

struct duo_rocr duo_rocr;

static const struct duo_symbol duo_rocr_symbols[] = {
	{ "hsa_init", &duo_rocr.init },
	{ "hsa_iterate_agents", &duo_rocr.agents },
	{ "hsa_agent_get_info", &duo_rocr.agent_info },
	{ "hsa_amd_pointer_info", &duo_rocr.pointer },
	{ "hsa_signal_create", &duo_rocr.signal_open },
	{ "hsa_signal_destroy", &duo_rocr.signal_close },
	{ "hsa_signal_load_scacquire", &duo_rocr.load },
	{ "hsa_signal_store_screlease", &duo_rocr.store },
	{ "hsa_signal_wait_scacquire", &duo_rocr.wait },
	{ "hsa_amd_memory_async_copy", &duo_rocr.copy },
	{ "hsa_amd_memory_lock", &duo_rocr.pin },
	{ "hsa_amd_memory_unlock", &duo_rocr.unpin },
	{ NULL },
};

/* A copy. Value of its signal: 1: pending; 0: ended; negative: failed. */
struct duo_rocr_copy {
	struct duo_stream_copy base;
	struct duo_rocr_signal signal;
	/*
	 * [0]: destination, [1]: source. Its address, if it was pinned for this
	 * copy only; otherwise NULL
	 */
	void *pinned[2];
};

struct duo_rocr_pin {
	struct duo_device_handle handle;
	void *memory;
};

static struct duo_rocr_agent duo_rocr_cpu;	/* agent of host memory */

static bool duo_rocr_is_cpu(struct duo_rocr_agent agent)
{
	uint32_t type;

	return !duo_rocr.agent_info(agent, DUO_ROCR_INFO_DEVICE, &type) &&
	       type == DUO_ROCR_CPU;
}

/* Callback of hsa_iterate_agents(): stores the agent of the first CPU. */
static int duo_rocr_find_cpu(struct duo_rocr_agent agent, void *data)
{
	struct duo_rocr_agent *cpu = data;

	if (!duo_rocr_is_cpu(agent))
		return 0;
	*cpu = agent;
	return DUO_ROCR_BREAK;
}

static bool duo_rocr_init(void)
{
	return !duo_rocr.init() &&
	       duo_rocr.agents(duo_rocr_find_cpu, &duo_rocr_cpu) ==
		       DUO_ROCR_BREAK;
}

struct duo_library duo_rocr_library = {
	.name = "libhsa-runtime64.so.1", .iface = "ROCr",
	.symbols = duo_rocr_symbols, .init = duo_rocr_init,
};

/*
 * Stores ROCr's description of the memory at addr. If ROCr has neither
 * allocated nor pinned the memory, info->type is DUO_ROCR_UNKNOWN. Returns 0 or
 * -FI_EIO.
 */
static int duo_rocr_look(const void *addr, struct duo_rocr_info *info)
{
	*info = (struct duo_rocr_info) { .size = sizeof(*info) };
	return duo_rocr.pointer(addr, info, NULL, NULL, NULL) ? -FI_EIO : 0;
}

static struct duo_rocr_copy *duo_rocr_copy_of(struct duo_stream_copy *base)
{
	return duo_container_of(base, struct duo_rocr_copy, base);
}

static int duo_rocr_copy_open(struct duo_stream_copy *base)
{
	return duo_rocr.signal_open(0, 0, NULL,
				    &duo_rocr_copy_of(base)->signal) ?
		       -FI_EIO : 0;
}

static void duo_rocr_copy_close(struct duo_stream_copy *base)
{
	duo_rocr.signal_close(duo_rocr_copy_of(base)->signal);
}

/*
 * Prepares the source or destination of a copy, and stores its agent (a CPU or
 * GPU) in *agent. If the memory is host memory, replaces *addr by the address
 * that GPUs use for it. If ROCr has not pinned this host memory yet, pins it
 * for this copy, and stores its former address in *pinned. Returns 0 or
 * -FI_EIO.
 */
static int duo_rocr_side(void **addr, size_t len, struct duo_rocr_agent *agent,
			 void **pinned)
{
	struct duo_rocr_info info;
	int ret = duo_rocr_look(*addr, &info);
	size_t offset = (uintptr_t) *addr - (uintptr_t) info.host_base;

	if (ret)
		return ret;
	if (info.type != DUO_ROCR_UNKNOWN && info.type != DUO_ROCR_LOCKED) {
		*agent = info.owner;
		return 0;
	}
	*agent = duo_rocr_cpu;
	if (info.type == DUO_ROCR_LOCKED && offset <= info.len &&
	    len <= info.len - offset) {
		*addr = (char *) info.agent_base + offset;
		return 0;
	}
	*pinned = *addr;
	if (!duo_rocr.pin(*pinned, len, NULL, 0, addr))
		return 0;
	*pinned = NULL;
	return -FI_EIO;
}

static void duo_rocr_unpin_sides(struct duo_rocr_copy *copy)
{
	int i;

	for (i = 0; i < 2; i++)
		if (copy->pinned[i])
			duo_rocr.unpin(copy->pinned[i]);
	copy->pinned[0] = copy->pinned[1] = NULL;
}

static int duo_rocr_start(struct duo_stream_copy *base, void *to,
			  const void *from, size_t len)
{
	struct duo_rocr_copy *copy = duo_rocr_copy_of(base);
	struct duo_rocr_agent to_agent, from_agent;
	void *source = (void *) from;
	int ret;

	if (base->stream->device == duo_rocr_cpu.handle) {
		memcpy(to, from, len);
		duo_rocr.store(copy->signal, 0);
		return 0;
	}
	ret = duo_rocr_side(&to, len, &to_agent, &copy->pinned[0]);
	if (!ret)
		ret = duo_rocr_side(&source, len, &from_agent,
				    &copy->pinned[1]);
	if (!ret) {
		duo_rocr.store(copy->signal, 1);
		if (duo_rocr.copy(to, to_agent, source, from_agent, len, 0,
				  NULL, copy->signal))
			ret = -FI_EIO;
	}
	if (ret)
		duo_rocr_unpin_sides(copy);
	return ret;
}

static int duo_rocr_done(struct duo_stream_copy *base)
{
	struct duo_rocr_copy *copy = duo_rocr_copy_of(base);
	int64_t value = duo_rocr.load(copy->signal);

	if (value > 0)
		return -FI_EAGAIN;
	duo_rocr_unpin_sides(copy);
	return value ? -FI_EIO : 0;
}

/* Loops, because hsa_signal_wait_scacquire() might return too early. */
static void duo_rocr_wait(struct duo_stream_copy *base)
{
	while (duo_rocr.wait(duo_rocr_copy_of(base)->signal, DUO_ROCR_LESS, 1,
			     UINT64_MAX, DUO_ROCR_BLOCKED) > 0)
		;
}

static const struct duo_stream_driver duo_rocr_driver = {
	.size = sizeof(struct duo_stream),
	.copy_size = sizeof(struct duo_rocr_copy),
	.copy_open = duo_rocr_copy_open,
	.copy_close = duo_rocr_copy_close,
	.start = duo_rocr_start,
	.done = duo_rocr_done,
	.wait = duo_rocr_wait,
};

/*
 * Host memory that the application has allocated or pinned with ROCr uses the
 * stream of duo_rocr_cpu. For this stream, duo_rocr_start() copies by memcpy().
 */
static int duo_rocr_open(const struct fi_mr_attr *attr, const void *addr,
			 struct duo_stream **stream)
{
	struct duo_rocr_agent agent;
	struct duo_rocr_info info;
	int ret;

	if (!duo_library_load(&duo_rocr_library))
		return -FI_ENOSYS;
	ret = duo_rocr_look(addr, &info);
	if (ret)
		return ret;
	if (info.type == DUO_ROCR_UNKNOWN) {
		DUO_INFO(MR, "memory at %p: neither allocated nor pinned with "
			 "ROCr\n", addr);
		return -FI_EINVAL;
	}
	agent = info.type == DUO_ROCR_LOCKED || duo_rocr_is_cpu(info.owner) ?
		duo_rocr_cpu : info.owner;
	return duo_stream_open(&duo_rocr_driver, agent.handle, NULL, stream);
}

static void duo_rocr_unpin(struct duo_device_handle *handle)
{
	struct duo_rocr_pin *pin =
		duo_container_of(handle, struct duo_rocr_pin, handle);

	duo_rocr.unpin(pin->memory);
	free(pin);
}

/* Pins host memory for all GPUs. NULL: failed; so each copy pins its bytes. */
static struct duo_device_handle *duo_rocr_pin(struct duo_stream *stream,
					      void *memory, size_t len)
{
	struct duo_rocr_pin *pin = malloc(sizeof(*pin));
	void *addr;
	int ret;

	if (!pin)
		return NULL;
	ret = duo_rocr.pin(memory, len, NULL, 0, &addr);
	if (ret) {
		DUO_INFO(MR, "cannot pin %zu bytes of shared memory with ROCr "
			 "(%d): copies through them are slow\n", len, ret);
		free(pin);
		return NULL;
	}
	*pin = (struct duo_rocr_pin) { { duo_rocr_unpin }, memory };
	return &pin->handle;
}

const struct duo_device_iface duo_rocr_iface = {
	.id = FI_HMEM_ROCR,
	.open = duo_rocr_open,
	.pin = duo_rocr_pin,
};
