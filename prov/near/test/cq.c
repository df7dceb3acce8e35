/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues of the provider: their sizes, who wakes a sleeper, and which
 * reads yield the processor.
 */

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cq.h"
#include "link/proc.h"
#include "unit.h"

#define CQ_LONG_MS 1000
#define CQ_READS 100000

struct fi_provider near_prov = { .name = NEAR_NAME };
struct near_params near_params = {
	.memory = NEAR_MEMORY,
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static bool signal_now;
static unsigned int yields;
static int cpus;		/* that all processes may run on */

static void cq_setup_as(enum fi_threading threading)
{
	struct fi_fabric_attr attr = { .api_version = FI_VERSION(1, 17) };
	struct fi_info *info = fi_allocinfo();

	info->domain_attr->threading = threading;
	ck_assert(!near_fabric_open(&attr, &fabric, NULL));
	ck_assert(!near_domain_open(fabric, info, &domain, NULL));
	fi_freeinfo(info);
}

/* No lock: eventfd_read() is called under it. */
static void cq_setup(void)
{
	cq_setup_as(FI_THREAD_DOMAIN);
}

static void cq_setup_locked(void)
{
	cq_setup_as(FI_THREAD_SAFE);
}

static void cq_teardown(void)
{
	ck_assert(!fi_close(&domain->fid));
	ck_assert(!fi_close(&fabric->fid));
}

static const size_t cq_sizes[] = {
	0, 1, 1 << 20, (1 << 20) + 1, SIZE_MAX / 48 + 1, SIZE_MAX / 2 + 1,
	SIZE_MAX / 2 + 2, SIZE_MAX,
};

/* It is a hint: what was asked for up to a limit, and more when it is full. */
START_TEST(cq_size)
{
	struct fi_cq_attr attr = { .size = cq_sizes[_i] };
	uint64_t room;

	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	room = near_cq_of(cq)->mask + 1;
	ck_assert_uint_ge(room, attr.size < 1 << 20 ? attr.size : 1 << 20);
	ck_assert_uint_le(room, 1 << 20);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

static const struct {
	enum fi_cq_format format;
	size_t size;
} cq_formats[] = {
	{ FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

/* Nothing is written behind the caller's entry. */
START_TEST(cq_format)
{
	struct fi_cq_attr attr = { .format = cq_formats[_i].format };
	const struct fi_cq_tagged_entry done = { .op_context = &attr };
	uint8_t out[2 * sizeof(done)];
	size_t at;

	memset(out, 0x5a, sizeof(out));
	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	near_cq_put_other(near_cq_of(cq), &done, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_cq_read(cq, out, 1), 1);
	ck_assert_int_eq(memcmp(out, &done, cq_formats[_i].size), 0);
	for (at = cq_formats[_i].size; at < sizeof(out); at++)
		ck_assert_uint_eq(out[at], 0x5a);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

#if FI_MAJOR_VERSION >= 2
static const struct {
	uint32_t version;
	size_t size;	/* of its error entry */
} cq_errors[] = {
	{ FI_VERSION(1, 4), offsetof(struct fi_cq_err_entry, err_data_size) },
	{ FI_VERSION(1, 17), offsetof(struct fi_cq_err_entry, src_addr) },
	{ FI_VERSION(1, 20), sizeof(struct fi_cq_err_entry) },
};

START_TEST(cq_error_size)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	const struct fi_cq_err_entry error = { .err = FI_EIO, .src_addr = 7 };
	struct {
		struct fi_cq_err_entry entry;
		uint8_t behind[64];
	} out;
	const uint8_t *byte = (const uint8_t *)&out;
	size_t at;

	fabric->api_version = cq_errors[_i].version;
	memset(&out, 0x5a, sizeof(out));
	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	near_cq_error(near_cq_of(cq), &error);
	/* newer headers' fi_cq_readerr() writes to the entry itself */
	ck_assert_int_eq(cq->ops->readerr(cq, &out.entry, 0), 1);
	ck_assert_int_eq(out.entry.err, FI_EIO);
	for (at = cq_errors[_i].size; at < sizeof(out); at++)
		ck_assert_uint_eq(byte[at], 0x5a);
	if (cq_errors[_i].size == sizeof(error))
		ck_assert_uint_eq(out.entry.src_addr, 7);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST
#endif

/* The provider's only call of it comes after its last look for completions. */
int eventfd_read(int fd, eventfd_t *value)
{
	if (signal_now)
		ck_assert(!fi_cq_signal(cq));
	signal_now = false;
	return read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}

/* A signal that comes when its thread is about to sleep. */
START_TEST(cq_signalled)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	uint64_t begin = near_now_ms();
	struct fi_cq_entry entry;

	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	signal_now = true;
	ck_assert_int_eq(fi_cq_sread(cq, &entry, 1, NULL, CQ_LONG_MS),
			 -FI_EAGAIN);
	ck_assert(!signal_now);
	ck_assert_uint_lt(near_now_ms() - begin, CQ_LONG_MS);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

int sched_yield(void)
{
	__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	return 0;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	int i;

	CPU_ZERO_S(size, set);
	for (i = 0; i < cpus; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

static void cq_read_nothing(int times)
{
	struct fi_cq_entry entry;

	while (times--)
		ck_assert_int_eq(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

/* One in so many that find nothing. */
START_TEST(cq_yields)
{
	struct fi_cq_attr attr = { 0 };

	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	near_params.yield = 4;
	near_params.yield_always = true;
	yields = 0;
	cq_read_nothing(3);
	ck_assert_uint_eq(yields, 0);
	cq_read_nothing(1);
	ck_assert_uint_eq(yields, 1);
	cq_read_nothing(8);
	ck_assert_uint_eq(yields, 3);
	near_params.yield = 0;
	cq_read_nothing(8);
	ck_assert_uint_eq(yields, 3);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

static void *cq_reader(void *none)
{
	cq_read_nothing(CQ_READS);
	return NULL;
}

/* Reads of all threads count, and none is lost. */
START_TEST(cq_yields_threads)
{
	struct fi_cq_attr attr = { 0 };
	pthread_t other;

	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	near_params.yield = 4;
	near_params.yield_always = true;
	yields = 0;
	ck_assert(!pthread_create(&other, NULL, cq_reader, NULL));
	cq_read_nothing(CQ_READS);
	ck_assert(!pthread_join(other, NULL));
	ck_assert_uint_eq(yields, 2 * CQ_READS / 4);
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

/* A peer's message that waits for a receive leaves no completion. */
START_TEST(cq_serves)
{
	struct fi_cq_attr attr = { 0 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *info = fi_allocinfo();
	struct near_addr name;
	size_t len = sizeof(name);
	struct fid_ep *ep;
	struct fid_av *av;
	fi_addr_t self;

	info->caps = FI_MSG | FI_TAGGED;
	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	ck_assert(!fi_av_open(domain, &av_attr, &av, NULL));
	ck_assert(!near_ep_open(domain, info, &ep, NULL));
	fi_freeinfo(info);
	ck_assert(!fi_ep_bind(ep, &av->fid, 0));
	ck_assert(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(ep));
	ck_assert(!fi_getname(&ep->fid, &name, &len));
	ck_assert_int_eq(fi_av_insert(av, &name, 1, &self, 0, NULL), 1);
	near_params.yield = 4;
	near_params.yield_always = true;
	yields = 0;
	cq_read_nothing(3);
	ck_assert(!fi_tinject(ep, "", 1, self, 1));
	cq_read_nothing(1);	/* it takes that */
	cq_read_nothing(2);
	ck_assert_uint_eq(yields, 0);
	cq_read_nothing(1);
	ck_assert_uint_eq(yields, 1);
	ck_assert(!fi_close(&ep->fid));
	ck_assert(!fi_close(&av->fid));
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

/* It knows somebody in another process. */
static void cq_insert(struct fid_av *av, struct fid_ep *ep, int pid)
{
	struct near_addr name;
	size_t len = sizeof(name);

	ck_assert(!fi_getname(&ep->fid, &name, &len));
	name.nonce += pid;
	name.pid += pid;
	ck_assert_int_eq(fi_av_insert(av, &name, 1, NULL, 0, NULL), 1);
}

/* An endpoint that knows itself and somebody in another process. */
static void cq_pair(struct fid_av **av, struct fid_ep **ep)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fi_info *info = fi_allocinfo();

	info->caps = FI_MSG;
	ck_assert(!fi_av_open(domain, &attr, av, NULL));
	ck_assert(!near_ep_open(domain, info, ep, NULL));
	fi_freeinfo(info);
	ck_assert(!fi_ep_bind(*ep, &(*av)->fid, 0));
	ck_assert(!fi_ep_bind(*ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	ck_assert(!fi_enable(*ep));
	cq_insert(*av, *ep, 0);
	cq_insert(*av, *ep, 1);
}

/* Where there are more processes than processors; else never. */
START_TEST(cq_crowd)
{
	uint64_t end = near_now_ms() + 10 * CQ_LONG_MS, next;
	struct fi_cq_attr attr = { 0 };
	fi_addr_t last = 2;
	struct fid_av *av;
	struct fid_ep *ep;

	near_params.yield = 4;
	near_params.yield_always = false;
	ck_assert(!fi_cq_open(domain, &attr, &cq, NULL));
	cq_pair(&av, &ep);
	cpus = 1;
	yields = 0;
	cq_read_nothing(4);
	ck_assert_uint_eq(yields, 1);
	/* another one is there now, which is seen at the next look */
	cpus = 2;
	while (yields) {
		ck_assert_uint_lt(near_now_ms(), end);
		yields = 0;
		cq_read_nothing(4);
	}
	cq_read_nothing(12);
	ck_assert_uint_eq(yields, 0);
	/* who gets to know more looks at once */
	cq_insert(av, ep, 2);
	cq_read_nothing(4);
	ck_assert_uint_eq(yields, 1);
	/* those who come in the place of others are no more */
	next = near_cq_of(cq)->crowd.next;
	ck_assert_uint_gt(next, 0);
	ck_assert(!fi_av_remove(av, &last, 1, 0));
	cq_insert(av, ep, 2);
	ck_assert_uint_eq(near_cq_of(cq)->crowd.next, next);
	ck_assert(!fi_close(&ep->fid));
	ck_assert(!fi_close(&av->fid));
	ck_assert(!fi_close(&cq->fid));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cq");
	TCase *tcase = tcase_create("cq");
	TCase *locked = tcase_create("with a lock");

	tcase_add_checked_fixture(tcase, cq_setup, cq_teardown);
	tcase_add_loop_test(tcase, cq_size, 0,
			    sizeof(cq_sizes) / sizeof(cq_sizes[0]));
	tcase_add_loop_test(tcase, cq_format, 0,
			    sizeof(cq_formats) / sizeof(*cq_formats));
#if FI_MAJOR_VERSION >= 2
	tcase_add_loop_test(tcase, cq_error_size, 0,
			    sizeof(cq_errors) / sizeof(*cq_errors));
#endif
	tcase_add_test(tcase, cq_signalled);
	tcase_add_test(tcase, cq_yields);
	tcase_add_test(tcase, cq_serves);
	tcase_add_test(tcase, cq_crowd);
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(locked, cq_setup_locked, cq_teardown);
	tcase_add_test(locked, cq_yields_threads);
	suite_add_tcase(suite, locked);
	return unit_run(suite);
}
