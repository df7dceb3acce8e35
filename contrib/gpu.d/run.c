/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 0 starts transfers, measures and verifies; rank 1 makes progress and
 * executes the steps that rank 0 requests.
 */

#include <signal.h>
#include <string.h>
#include <time.h>

#include "duogpu.h"

#define WINDOW 16		/* operations at a time, to measure bandwidth */
#define TAG 7

/* Values of gpu_shared.step, the next step of rank 1. */
enum gpu_step { GPU_IDLE, GPU_ECHO, GPU_SINK, GPU_CHECK, GPU_END };

static const size_t sizes[] = {
	8, 4096, 65536, 1 << 20, 16 << 20, 64 << 20,
};
#define SIZES (sizeof(sizes) / sizeof(*sizes))
static const char *const kinds[] = { "write", "read", "tagged" };
static const char *const places[] = { "host", "GPU" };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

/* Waits for this number of completions; counts those with an error. */
static void gpu_complete(int count)
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

static ssize_t gpu_post(enum gpu_kind kind, enum gpu_place mine,
			enum gpu_place theirs, size_t offset, size_t len)
{
	uint64_t at = gpu.sh->base[!gpu.rank][theirs] + offset;
	uint64_t key = gpu.sh->key[!gpu.rank][theirs];
	char *buf = gpu.place[mine] + offset;
	void *desc = fi_mr_desc(gpu.mr[mine]);

	if (kind == GPU_TAGGED)
		return fi_tsend(gpu.ep, buf, len, desc, gpu.peer, TAG, NULL);
	return kind == GPU_READ ?
	       fi_read(gpu.ep, buf, len, desc, gpu.peer, at, key, NULL) :
	       fi_write(gpu.ep, buf, len, desc, gpu.peer, at, key, NULL);
}

static void gpu_start(enum gpu_kind kind, enum gpu_place mine,
		      enum gpu_place theirs, size_t offset, size_t len)
{
	ssize_t ret;

	/* the stand-in lets a call fail once: the second call succeeds */
	while ((ret = gpu_post(kind, mine, theirs, offset, len)) == -FI_EAGAIN ||
	       (ret == -FI_EIO && getenv("STANDIN_FAIL")))
		fi_cq_read(gpu.cq, NULL, 0);
	GPU_OK(ret);
}

static void gpu_receive(enum gpu_place mine, size_t offset, size_t len)
{
	GPU_OK(fi_trecv(gpu.ep, gpu.place[mine] + offset, len,
			fi_mr_desc(gpu.mr[mine]), gpu.peer, TAG, 0, NULL));
}

static void gpu_next(enum gpu_step step)
{
	__atomic_store_n(&gpu.sh->step, step, __ATOMIC_SEQ_CST);
}

static char byte_of(size_t i, unsigned int seed)
{
	return (char) ((i * 7 + seed) ^ i >> 9);
}

/*
 * If "fill" is set, fills the memory with bytes that depend on the seed, and
 * returns true. Otherwise returns true if the memory has these bytes.
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

/* Makes rank 1 fill its memory, or compare its contents. */
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
	while (__atomic_load_n(&gpu.sh->checked, __ATOMIC_SEQ_CST) == checked)
		fi_cq_read(gpu.cq, NULL, 0);
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
 * Rank 1: receives messages of len bytes until rank 0 requests another step; if
 * "echo" is set, sends each back.
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
		if (!echo)
			continue;
		gpu_start(GPU_TAGGED, place, place, 0, len);
		gpu_complete(1);
	}
	__atomic_add_fetch(&gpu.sh->checked, 1, __ATOMIC_SEQ_CST);
}

void gpu_serve(void)
{
	uint32_t step;

	while ((step = __atomic_load_n(&gpu.sh->step, __ATOMIC_SEQ_CST)) !=
	       GPU_END) {
		if (step == GPU_CHECK)
			gpu_answer();
		else if (step == GPU_ECHO || step == GPU_SINK)
			gpu_messages(step == GPU_ECHO);
		else
			fi_cq_read(gpu.cq, NULL, 0);
	}
}

static int gpu_rounds(size_t len)
{
	return len <= 65536 ? 300 : len <= 1 << 20 ? 60 : 8;
}

/*
 * Returns the time of an operation, s; for messages, half a round trip.
 */
static double gpu_latency(enum gpu_kind kind, enum gpu_place mine,
			  enum gpu_place theirs, size_t len)
{
	int i, rounds = gpu_rounds(len), warm = 1 + rounds / 10;
	uint32_t checked = gpu.sh->checked;
	double begin = 0;

	gpu.sh->check.place = theirs;
	gpu.sh->check.offset = 0;
	gpu.sh->check.len = len;
	gpu.sh->check.seed = (unsigned int) (rounds + warm);
	if (kind == GPU_TAGGED)
		gpu_next(GPU_ECHO);
	for (i = -warm; i < rounds; i++) {
		if (!i)
			begin = now();
		if (kind == GPU_TAGGED)
			gpu_receive(mine, 0, len);
		gpu_start(kind, mine, theirs, 0, len);
		gpu_complete(kind == GPU_TAGGED ? 2 : 1);
	}
	begin = (now() - begin) / rounds;
	while (kind == GPU_TAGGED &&
	       __atomic_load_n(&gpu.sh->checked, __ATOMIC_SEQ_CST) == checked)
		fi_cq_read(gpu.cq, NULL, 0);
	return kind == GPU_TAGGED ? begin / 2 : begin;
}

/* Returns the bytes per second of WINDOW operations at a time. */
static double gpu_bandwidth(enum gpu_kind kind, enum gpu_place mine,
			    enum gpu_place theirs, size_t len)
{
	int i, under_way = 0, rounds = 2 * gpu_rounds(len);
	double begin = now();

	for (i = 0; i < rounds; i++) {
		gpu_start(kind, mine, theirs, 0, len);
		if (++under_way == WINDOW) {
			gpu_complete(1);
			under_way--;
		}
	}
	gpu_complete(under_way);
	return (double) len * rounds / (now() - begin);
}

static void gpu_head(void)
{
	size_t i;

	printf("\n%-22s", "us (GB/s)");
	for (i = 0; i < SIZES; i++)
		printf(" %9zu B    ", sizes[i]);
	putchar('\n');
}

static void gpu_row(enum gpu_kind kind, enum gpu_place mine,
		    enum gpu_place theirs)
{
	size_t i;

	printf("%-6s %4s to %-4s    ", kinds[kind],
	       places[kind == GPU_READ ? theirs : mine],
	       places[kind == GPU_READ ? mine : theirs]);
	for (i = 0; i < SIZES; i++) {
		printf(" %7.1f", 1e6 * gpu_latency(kind, mine, theirs, sizes[i]));
		if (kind == GPU_TAGGED)
			printf("       ");
		else
			printf(" %6.2f", gpu_bandwidth(kind, mine, theirs,
						       sizes[i]) / 1e9);
	}
	putchar('\n');
	fflush(stdout);
}

/* A kind of copy by the driver. other: to another GPU; NULL: within one GPU */
struct gpu_way {
	const char *name;
	uint64_t to, from;
	size_t most;
	const struct gpu_other *other;
};

static void gpu_copy(const struct gpu_way *way, size_t len)
{
	if (way->other)
		GPU_OK(cuda.copy_peer(way->to, way->other->context, way->from,
				      way->other->mine, len, NULL));
	else
		GPU_OK(cuda.copy(way->to, way->from, len, NULL));
	GPU_OK(cuda.wait());
}

static void gpu_copy_row(const struct gpu_way *way)
{
	double begin = 0;
	size_t s;
	int i, n;

	printf("cuMemcpy %-13s", way->name);
	for (s = 0; s < SIZES && sizes[s] <= way->most; s++) {
		n = gpu_rounds(sizes[s]);
		for (i = -2; i < n; i++) {
			begin = i > 0 ? begin : now();
			gpu_copy(way, sizes[s]);
		}
		begin = (now() - begin) / n;
		printf(" %7.1f %6.2f", 1e6 * begin,
		       (double) sizes[s] / begin / 1e9);
	}
	putchar('\n');
	fflush(stdout);
}

/* Measures the driver's own copies, in rank 0. */
void gpu_copies(void)
{
	const uint64_t device = (uintptr_t) gpu.place[GPU_DEVICE];
	const size_t half = GPU_MOST / 2;
	struct gpu_other other;
	void *pinned;

	GPU_OK(cuda.host(&pinned, GPU_MOST));
	gpu_copy_row(&(struct gpu_way) { "GPU to pinned", (uintptr_t) pinned,
					 device, GPU_MOST, NULL });
	gpu_copy_row(&(struct gpu_way) { "pinned to GPU", device,
					 (uintptr_t) pinned, GPU_MOST, NULL });
	gpu_copy_row(&(struct gpu_way) { "GPU to itself", device + half,
					 device, half, NULL });
	if (gpu_cuda_other(&other, GPU_MOST))
		gpu_copy_row(&(struct gpu_way) { "GPU to GPU", other.at, device,
						 GPU_MOST, &other });
}

/* Repeats transfers for the time after which near maps physical memory. */
static void gpu_warm(void)
{
	double begin = now();

	while (now() - begin < 0.1) {
		gpu_latency(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 1 << 16);
		gpu_latency(GPU_TAGGED, GPU_DEVICE, GPU_DEVICE, 1 << 16);
	}
}

void gpu_table(void)
{
	int kind, where;

	gpu_warm();
	gpu_head();
	gpu_copies();
	for (kind = 0; kind < GPU_KINDS; kind++)
		for (where = 1; where < 4; where++)
			gpu_row(kind, where & 1, where >> 1);
	for (kind = 0; kind < GPU_KINDS; kind++)
		gpu_row(kind, GPU_HOST, GPU_HOST);
	gpu_next(GPU_END);
	if (gpu.errors)
		GPU_FAIL("%d operations failed", gpu.errors);
}

/* Returns a random length, of any order of magnitude. */
static size_t gpu_any_len(void)
{
	return 1 + (size_t) rand() % ((size_t) 2 << rand() % 22);
}

/* Checks that an operation has transferred the right data, or has failed. */
static void gpu_verify_one(unsigned int seed)
{
	enum gpu_kind kind = (enum gpu_kind) (rand() % GPU_KINDS);
	enum gpu_place mine = rand() % 4 ? GPU_DEVICE : GPU_HOST;
	enum gpu_place theirs = rand() % 4 ? GPU_DEVICE : GPU_HOST;
	size_t len = gpu_any_len(), offset = (size_t) rand() % 4096;
	uint32_t checked;
	int failed = gpu.errors;
	bool right;

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
	while (kind == GPU_TAGGED &&
	       __atomic_load_n(&gpu.sh->checked, __ATOMIC_SEQ_CST) == checked)
		fi_cq_read(gpu.cq, NULL, 0);
	gpu.errors += gpu.sh->lost;
	gpu.sh->lost = 0;
	if (gpu.errors > failed)
		return; /* permitted: contrib/gpu makes the driver fail */
	if (kind != GPU_READ)
		gpu_ask(theirs, offset, len, seed, false);
	right = kind == GPU_READ ? gpu_bytes(mine, offset, len, seed, false) :
				   !gpu.sh->wrong;
	if (!right)
		GPU_FAIL("%s, %s to %s, %zu bytes: wrong data", kinds[kind],
			 places[mine], places[theirs], len);
}

/* True if DUOGPU_MAPPED requires a mapping, and the rank has made none yet. */
static bool gpu_must_map(int rank)
{
	const char *mapped = getenv("DUOGPU_MAPPED");

	gpu_mapped();
	return mapped && atoi(mapped) && !gpu.sh->mapped[rank];
}

/* True if a GPU must copy for the other rank, and none has done so yet. */
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
 * Starts writes to the killed peer until one fails. (Writes that near copied
 * before it detected the failure succeed.) Returns false if none fails within a
 * second.
 */
static bool gpu_until_error(double killed)
{
	ssize_t ret;

	while (!gpu.errors && now() - killed < 1) {
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
	double begin = now(), killed;
	int i, under_way = 0;
	bool failed;

	while (now() - begin < 0.5 || gpu_must_map(0)) {
		gpu_start(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 0, 4 << 20);
		if (++under_way == WINDOW) {
			gpu_complete(1);
			under_way--;
		}
	}
	if (gpu.errors)
		GPU_FAIL("%d operations failed before the kill", gpu.errors);
	for (i = under_way; i < WINDOW; i++, under_way++)
		gpu_start(GPU_WRITE, GPU_DEVICE, GPU_DEVICE, 0, 4 << 20);
	kill(child, SIGKILL);
	killed = now();
	gpu_complete(under_way);
	failed = gpu_until_error(killed);
	killed = now() - killed;
	printf("peer killed: %d operations failed, the last after %.0f ms\n",
	       gpu.errors, 1e3 * killed);
	if (!failed || killed > 1)
		GPU_FAIL("operations to a dead peer must fail within 1 s");
}
