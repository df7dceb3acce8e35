/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 0 starts transfers, measures and verifies. Rank 1 makes progress and
 * executes the steps that rank 0 requests.
 */

#include <signal.h>
#include <string.h>
#include <time.h>

#include "duogpu.h"

#define TAG 7

const char *const gpu_kinds[] = { "write", "read", "tagged" };
const char *const gpu_places[] = { "host", "GPU" };

double gpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

void gpu_complete(int count)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	ssize_t ret;

	while (count) {
		ret = fi_cq_read(gpu.cq, &entry, 1);
		if (ret == 1) {
			count--;
		} else if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			if (fi_cq_readerr(gpu.cq, &err, 0) != 1)
				GPU_FAIL("fi_cq_readerr");
			gpu.errors++;
			count--;
		} else if (ret != -FI_EAGAIN) {
			GPU_FAIL("fi_cq_read: %zd", ret);
		}
	}
}

/* Writes, with a completion when the bytes are in the target's memory. */
static ssize_t gpu_post_delivered(char *buf, size_t len, void *desc,
				  uint64_t at, uint64_t key)
{
	const struct iovec iov = { buf, len };
	const struct fi_rma_iov rma = { at, len, key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = gpu.peer, .rma_iov = &rma, .rma_iov_count = 1,
	};

	return fi_writemsg(gpu.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static ssize_t gpu_post(enum gpu_kind kind, enum gpu_place mine,
			enum gpu_place theirs, size_t offset, size_t len)
{
	uint64_t at = gpu.sh->base[!gpu.rank][theirs] + offset;
	uint64_t key = gpu.sh->key[!gpu.rank][theirs];
	char *buf = gpu.place[mine] + offset;
	void *desc = fi_mr_desc(gpu.mr[mine]);

	if (kind == GPU_TAGGED)
		return fi_tsend(gpu.ep, buf, len, desc, gpu.peer, TAG, NULL);
	if (kind == GPU_WRITE && gpu.sh->settle)
		return gpu_post_delivered(buf, len, desc, at, key);
	return kind == GPU_READ ?
	       fi_read(gpu.ep, buf, len, desc, gpu.peer, at, key, NULL) :
	       fi_write(gpu.ep, buf, len, desc, gpu.peer, at, key, NULL);
}

void gpu_start(enum gpu_kind kind, enum gpu_place mine, enum gpu_place theirs,
	       size_t offset, size_t len)
{
	ssize_t ret;

	/*
	 * With STANDIN_FAIL=N, the N-th call of the stand-in for the driver
	 * (standin.c) fails, and no other call, so the second post succeeds.
	 */
	while ((ret = gpu_post(kind, mine, theirs, offset, len)) == -FI_EAGAIN ||
	       (ret == -FI_EIO && getenv("STANDIN_FAIL")))
		fi_cq_read(gpu.cq, NULL, 0);
	GPU_OK(ret);
}

void gpu_receive(enum gpu_place mine, size_t offset, size_t len)
{
	GPU_OK(fi_trecv(gpu.ep, gpu.place[mine] + offset, len,
			fi_mr_desc(gpu.mr[mine]), gpu.peer, TAG, 0, NULL));
}

void gpu_next(enum gpu_step step)
{
	__atomic_store_n(&gpu.sh->step, step, __ATOMIC_SEQ_CST);
}

static char byte_of(size_t i, unsigned int seed)
{
	return (char) ((i * 7 + seed) ^ i >> 9);
}

/*
 * Fills the memory with bytes that depend on the seed, and returns true.
 * Without "fill", returns true if the memory has these bytes.
 */
static bool gpu_bytes(enum gpu_place place, size_t offset, size_t len,
		      unsigned int seed, bool fill)
{
	static char *text;
	char *at = gpu.place[place] + offset;
	size_t i;

	text = text ? text : malloc(GPU_MOST);
	if (!fill && place == GPU_DEVICE)
		GPU_OK(cuda.out(text, (uintptr_t) at, len));
	else if (!fill)
		memcpy(text, at, len);
	for (i = 0; i < len; i++) {
		if (fill)
			text[i] = byte_of(i, seed);
		else if (text[i] != byte_of(i, seed))
			return false;
	}
	if (fill && place == GPU_DEVICE) {
		GPU_OK(cuda.in((uintptr_t) at, text, len));
		GPU_OK(cuda.wait());
	} else if (fill) {
		memcpy(at, text, len);
	}
	return true;
}

void gpu_await(uint32_t checked)
{
	while (__atomic_load_n(&gpu.sh->checked, __ATOMIC_SEQ_CST) == checked)
		fi_cq_read(gpu.cq, NULL, 0);
}

/*
 * Makes rank 1 fill its memory with the bytes of the seed or, without "fill",
 * compare it with these bytes. Waits until rank 1 has done so.
 */
static void gpu_ask(enum gpu_place place, size_t offset, size_t len,
		    unsigned int seed, bool fill)
{
	uint32_t checked = gpu.sh->checked;

	gpu.sh->check.place = place;
	gpu.sh->check.offset = offset;
	gpu.sh->check.len = len;
	gpu.sh->check.seed = seed;
	gpu.sh->check.fill = fill;
	gpu_next(GPU_CHECK);
	gpu_await(checked);
}

static void gpu_answer(void)
{
	const enum gpu_place place = gpu.sh->check.place;

	gpu_next(GPU_IDLE);
	gpu_mapped();
	if (!gpu_bytes(place, gpu.sh->check.offset, gpu.sh->check.len,
		       gpu.sh->check.seed, gpu.sh->check.fill))
		gpu.sh->wrong = true;
	__atomic_add_fetch(&gpu.sh->checked, 1, __ATOMIC_SEQ_CST);
}

/*
 * Rank 1: receives messages, and with "echo" sends each back. The number of
 * messages is check.seed.
 */
static void gpu_messages(bool echo)
{
	const enum gpu_place place = gpu.sh->check.place;
	unsigned int rounds = gpu.sh->check.seed;
	size_t len = gpu.sh->check.len;

	gpu_next(GPU_IDLE);
	while (rounds--) {
		gpu_receive(place, gpu.sh->check.offset, len);
		gpu_complete(1);
		gpu.sh->lost += gpu.errors;
		gpu.errors = 0;
		if (gpu.sh->settle)
			GPU_OK(cuda.wait());
		if (!echo)
			continue;
		gpu_start(GPU_TAGGED, place, place, 0, len);
		gpu_complete(1);
	}
	__atomic_add_fetch(&gpu.sh->checked, 1, __ATOMIC_SEQ_CST);
}

static void gpu_settled(void)
{
	gpu_next(GPU_IDLE);
	GPU_OK(cuda.wait());
	__atomic_add_fetch(&gpu.sh->checked, 1, __ATOMIC_SEQ_CST);
}

void gpu_serve(void)
{
	uint32_t step;

	while ((step = __atomic_load_n(&gpu.sh->step, __ATOMIC_SEQ_CST)) !=
	       GPU_END) {
		if (step == GPU_CHECK)
			gpu_answer();
		else if (step == GPU_SETTLE)
			gpu_settled();
		else if (step == GPU_ECHO || step == GPU_SINK)
			gpu_messages(step == GPU_ECHO);
		else
			fi_cq_read(gpu.cq, NULL, 0);
	}
}

/* Returns a random length, of any order of magnitude. */
static size_t gpu_any_len(void)
{
	return 1 + (size_t) rand() % ((size_t) 2 << rand() % 22);
}

void gpu_settle(enum gpu_kind kind)
{
	uint32_t checked = gpu.sh->checked;

	if (kind != GPU_TAGGED) {
		gpu_next(GPU_SETTLE);
		gpu_await(checked);
	}
	GPU_OK(cuda.wait());
}

bool gpu_right(enum gpu_kind kind, enum gpu_place mine, enum gpu_place theirs,
	       size_t offset, size_t len, unsigned int seed)
{
	int failed = gpu.errors;
	uint32_t checked;

	gpu.sh->wrong = false;
	if (kind == GPU_READ)
		gpu_ask(theirs, offset, len, seed, true);
	else
		gpu_bytes(mine, offset, len, seed, true);
	checked = gpu.sh->checked;
	if (kind == GPU_TAGGED) {
		gpu.sh->check.place = theirs;
		gpu.sh->check.offset = offset;
		gpu.sh->check.len = len;
		gpu.sh->check.seed = 1;
		gpu_next(GPU_SINK);
	}
	gpu_start(kind, mine, theirs, offset, len);
	gpu_complete(1);
	if (kind == GPU_TAGGED)
		gpu_await(checked);
	if (gpu.sh->settle)
		gpu_settle(kind);
	gpu.errors += gpu.sh->lost;
	gpu.sh->lost = 0;
	if (gpu.errors > failed && !getenv("STANDIN_FAIL"))
		GPU_FAIL("%s, %s to %s, %zu bytes: completed with an error",
			 gpu_kinds[kind], gpu_places[mine], gpu_places[theirs],
			 len);
	if (gpu.errors > failed)
		return true; /* permitted: contrib/gpu makes the driver fail */
	if (kind == GPU_READ)
		return gpu_bytes(mine, offset, len, seed, false);
	gpu_ask(theirs, offset, len, seed, false);
	return !gpu.sh->wrong;
}

static void gpu_verify_one(unsigned int seed)
{
	enum gpu_kind kind = (enum gpu_kind) (rand() % GPU_KINDS);
	enum gpu_place mine = rand() % 4 ? GPU_DEVICE : GPU_HOST;
	enum gpu_place theirs = rand() % 4 ? GPU_DEVICE : GPU_HOST;
	size_t len = gpu_any_len(), offset = (size_t) rand() % 4096;

	if (!gpu_right(kind, mine, theirs, offset, len, seed))
		GPU_FAIL("%s, %s to %s, %zu bytes: wrong data", gpu_kinds[kind],
			 gpu_places[mine], gpu_places[theirs], len);
}

/*
 * True if DUOGPU_MAPPED requires an operation in gpu_shared.mapped[rank], and
 * there is none yet.
 */
static bool gpu_must_map(int rank)
{
	const char *mapped = getenv("DUOGPU_MAPPED");

	gpu_mapped();
	return mapped && atoi(mapped) && !gpu.sh->mapped[rank];
}

/*
 * True if DUOGPU_MAPPED requires that each rank's GPU copies in an operation of
 * the other rank, and one of the two GPUs has not yet done so.
 */
static bool gpu_must_lend(void)
{
	const char *mapped = getenv("DUOGPU_MAPPED");

	return mapped && atoi(mapped) && !(gpu.sh->lent[0] && gpu.sh->lent[1]);
}

void gpu_verify(unsigned int count)
{
	unsigned int i;

	srand(1);
	for (i = 0; i < count || gpu_must_map(0) || gpu_must_map(1) ||
	     gpu_must_lend(); i++)
		gpu_verify_one(i);
	gpu_next(GPU_END);
	printf("%u transfers verified, %d failed\n", i - gpu.errors,
	       gpu.errors);
	if (gpu.errors && !getenv("STANDIN_FAIL"))
		GPU_FAIL("%d operations failed", gpu.errors);
}

/*
 * Writes to the killed peer until a write fails, because near, the local
 * transport of ofi_duo, has detected the peer failure. Returns false if no
 * write fails within a second of the kill.
 */
static bool gpu_until_error(double killed)
{
	ssize_t ret;

	while (!gpu.errors && gpu_now() - killed < 1) {
		ret = gpu_post(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 0, 4 << 20);
		if (!ret)
			gpu_complete(1);
		else if (ret == -FI_EAGAIN)
			fi_cq_read(gpu.cq, NULL, 0);
		else
			gpu.errors++;
	}
	return gpu.errors;
}

void gpu_kill(pid_t child)
{
	double begin = gpu_now(), killed;
	int i, under_way = 0;
	bool failed;

	while (gpu_now() - begin < 0.5 || gpu_must_map(0)) {
		gpu_start(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 0, 4 << 20);
		if (++under_way == GPU_WINDOW) {
			gpu_complete(1);
			under_way--;
		}
	}
	if (gpu.errors)
		GPU_FAIL("%d operations failed before the kill", gpu.errors);
	for (i = under_way; i < GPU_WINDOW; i++, under_way++)
		gpu_start(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 0, 4 << 20);
	kill(child, SIGKILL);
	killed = gpu_now();
	gpu_complete(under_way);
	failed = gpu_until_error(killed);
	killed = gpu_now() - killed;
	printf("peer killed: %d operations failed, the last after %.0f ms\n",
	       gpu.errors, 1e3 * killed);
	if (!failed || killed > 1)
		GPU_FAIL("operations to a dead peer must fail within 1 s");
}
