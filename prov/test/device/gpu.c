/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Two processes and a GPU, where there is one: messages of all sizes go to and
 * fro over near between device memory, or device memory and host memory, and
 * arrive intact; also while work of the application is queued on the device's
 * default stream. Prints the time of half a round trip.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#define ADDR 100		/* core address of rank 0; rank 1 has the next */
#define MOST (16u << 20)	/* bytes */
#define PATIENCE 200000000	/* polls */

static int rank;
static char shared[] = "/tmp/ofi_duo-gpu.XXXXXX";
static char *host;		/* what is sent, and what has come */
static uint64_t device;		/* MOST bytes on the GPU */
static fi_addr_t peer;
static int other[2];		/* sockets, by rank */

static struct {
	int (*init)(unsigned int flags);
	int (*retain)(void **context, int device);
	int (*current)(void *context);
	int (*alloc)(uint64_t *at, size_t len);
	int (*out)(void *to, uint64_t from, size_t len);
	int (*in)(uint64_t to, const void *from, size_t len);
	int (*fill)(uint64_t at, unsigned char byte, size_t len, void *stream);
	int (*wait)(void);
} cu;

static void barrier(void)
{
	char byte = 0;

	ck_assert_int_eq(write(other[rank], &byte, 1), 1);
	ck_assert_int_eq(read(other[rank], &byte, 1), 1);
}

static void *symbol(void *library, const char *name)
{
	void *call = dlsym(library, name);

	ck_assert_msg(call, "%s", name);
	return call;
}

static void cuda_open(void)
{
	void *context, *lib = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **) &cu.init = symbol(lib, "cuInit");
	*(void **) &cu.retain = symbol(lib, "cuDevicePrimaryCtxRetain");
	*(void **) &cu.current = symbol(lib, "cuCtxSetCurrent");
	*(void **) &cu.alloc = symbol(lib, "cuMemAlloc_v2");
	*(void **) &cu.out = symbol(lib, "cuMemcpyDtoH_v2");
	*(void **) &cu.in = symbol(lib, "cuMemcpyHtoD_v2");
	*(void **) &cu.fill = symbol(lib, "cuMemsetD8Async");
	*(void **) &cu.wait = symbol(lib, "cuCtxSynchronize");
	ck_assert_int_eq(cu.init(0), 0);
	ck_assert_int_eq(cu.retain(&context, 0), 0);
	ck_assert_int_eq(cu.current(context), 0);
	ck_assert_int_eq(cu.alloc(&device, 2 * MOST), 0);
}

static struct fid_mr *region(void)
{
	const struct iovec iov = { (void *) (uintptr_t) device, 2 * MOST };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_SEND | FI_RECV,
		.iface = FI_HMEM_CUDA, .requested_key = 1,
	};
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_regattr(fx.domain, &attr, 0, &mr), 0);
	return mr;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static void complete(int count)
{
	struct fi_cq_tagged_entry entry;
	long polls;
	ssize_t ret;

	/* an assertion is a system call: not one for each poll */
	for (polls = 0; count && polls < PATIENCE; polls++) {
		ret = fi_cq_read(fx.cq, &entry, 1);
		if (ret != 1 && ret != -FI_EAGAIN)
			break;
		count -= ret == 1;
	}
	ck_assert_int_eq(count, 0);
}

static void trip(bool sends, char *buf, size_t len, void *desc)
{
	ssize_t ret;

	if (!sends) {
		ck_assert_int_eq(fi_trecv(fx.ep, buf, len, desc, peer, TAG, 0,
					  buf), 0);
		complete(1);
		return;
	}
	while ((ret = fi_tsend(fx.ep, buf, len, desc, peer, TAG, buf)) ==
	       -FI_EAGAIN)
		fi_cq_read(fx.cq, NULL, 0);
	ck_assert_int_eq(ret, 0);
	complete(1);
}

static char byte_of(size_t i, size_t len, int round)
{
	return (char) (i * 7 + len + round);
}

/* Done when it returns: near's copies do not wait for the application's stream. */
static void clear(char *buf, size_t len, bool on_device)
{
	if (!on_device) {
		memset(buf, 0, len);
		return;
	}
	ck_assert_int_eq(cu.fill((uintptr_t) buf, 0, len, NULL), 0);
	ck_assert_int_eq(cu.wait(), 0);
}

/* on_device: the ranks whose buffer is on the GPU, a bit each. */
static void pingpong(size_t len, int on_device, struct fid_mr *mr)
{
	int round, rounds = len < 65536 ? 200 : len < MOST ? 50 : 10;
	bool mine = on_device >> rank & 1;
	char *buf = mine ? (char *) (uintptr_t) device : host + MOST;
	void *desc = mine ? fi_mr_desc(mr) : NULL;
	uint64_t begin = 0;
	size_t i;

	for (round = -1; round < rounds; round++) {
		if (!round)
			begin = now_ns();
		if (round < 0 && !rank) {	/* the one that is looked at */
			for (i = 0; i < len; i++)
				host[i] = byte_of(i, len, on_device);
			if (mine)
				ck_assert_int_eq(cu.in(device, host, len), 0);
			else
				memcpy(buf, host, len);
		}
		trip(!rank, buf, len, desc);
		if (round < 0 && !rank)
			clear(buf, len, mine);
		trip(rank, buf, len, desc);
		if (round >= 0)
			continue;
		if (mine)
			ck_assert_int_eq(cu.out(host, device, len), 0);
		else
			memcpy(host, buf, len);
		for (i = 0; i < len; i++)
			if (host[i] != byte_of(i, len, on_device))
				break;
		ck_assert_msg(i == len, "byte %zu of %zu, device %d", i, len,
			      on_device);
	}
	if (!rank)
		printf("%8zu bytes, %s: %8.1f us\n", len,
		       on_device == 3 ? "GPU to GPU " :
		       on_device ? "GPU to host" : "host       ",
		       (now_ns() - begin) / 2e3 / rounds);
}

/* Work of the application that is not done when the messages come. */
static void busy(struct fid_mr *mr)
{
	static char text[] = "beside a busy stream";
	int i;

	for (i = 0; i < 2000; i++)
		cu.fill(device + MOST, i, MOST, NULL);
	if (rank)
		trip(false, (char *) (uintptr_t) device, sizeof(text),
		     fi_mr_desc(mr));
	else
		trip(true, text, sizeof(text), NULL);
	if (!rank)
		return;
	ck_assert_int_eq(cu.out(host, device, sizeof(text)), 0);
	ck_assert_str_eq(host, text);
}

static void run(void)
{
	static const struct fixture_attr attr = { .device = true,
						  .near = true };
	static const size_t sizes[] = { 8, 4096, 65536, 1 << 20, MOST };
	struct fi_duo_stats stats;
	struct fid_mr *mr;
	size_t i;
	int on_device;

	fixture_open(&attr);
	duo_params.registry_dir = shared;
	fake.core.own_addr = ADDR + rank;
	ck_assert_int_eq(fixture_try(&attr), 0);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	fixture_ep()->max_msg_size = MOST;
	cuda_open();
	host = malloc(2 * MOST);
	ck_assert_ptr_nonnull(host);
	mr = region();
	barrier();
	peer = peer_insert(ADDR + !rank);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		for (on_device = 0; on_device < 4; on_device += on_device ? 2 : 1)
			pingpong(sizes[i], on_device, mr);
	busy(mr);
	stats = stats_now();
	ck_assert_uint_eq(stats.path[FI_DUO_CORE].tx_msgs, 0);
	ck_assert_uint_gt(stats.path[FI_DUO_LOCAL].tx_msgs, 0);
	barrier();
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	fixture_close();
}

static bool has_gpu(void)
{
	return !access("/dev/nvidiactl", F_OK) &&
	       dlopen("libcuda.so.1", RTLD_LAZY);
}

UNIT_LONG_CASE("gpu", NULL, NULL, 300);

UNIT_LOOP(two_processes, 0, has_gpu())
{
	pid_t child;

	ck_assert_ptr_nonnull(mkdtemp(shared));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	child = fork();
	rank = !child;
	run();
	if (!child)
		_exit(0);
	unit_join(child);
	rmdir(shared);
}
