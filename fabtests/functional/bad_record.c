/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An invalid file replaces rank 1's record. Rank 0 must log this once and use
 * the core. Rank 1 must use shared memory. All messages must arrive.
 */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_ext.h>

#include "common/ft.h"

#define MESSAGES 20
#define OTHER_UID 12345
#define WARNING "ignored. Remove it if it is stale"

enum bad { GARBAGE, TRUNCATED, FOREIGN, LINKED };

static struct ft_ep e;
static struct ft_buf buf;
static char record[PATH_MAX], aside[PATH_MAX + 8];
static int warnings;

/*
 * True if this is the path of a record: DIRECTORY/ofi_duo.HOST.RANDOM/HASH,
 * with 16 digits.
 */
static bool ft_is_record(size_t len)
{
	return memmem(record, len, "/ofi_duo.", 9) && len > 17 &&
	       record[len - 17] == '/';
}

/* Finds the record of this process among its open files. */
static void ft_find_record(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	ssize_t len = 0;

	FT_CHECK(dir, "/proc/self/fd: %m");
	while (len <= 0 && (entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, record,
				 sizeof(record) - 1);
		if (len > 0 && !ft_is_record(len))
			len = 0;
	}
	closedir(dir);
	FT_CHECK(len > 0, "no record");
	record[len] = '\0';
	snprintf(aside, sizeof(aside), "%s.aside", record);
}

/* Writes a file with a damaged copy of the record. */
static void ft_write_aside(enum bad bad)
{
	char bytes[8192];
	int in = open(record, O_RDONLY);
	int out = open(aside, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ssize_t len = read(in, bytes, sizeof(bytes));

	FT_CHECK(len > 0 && out >= 0, "%s, %s: %m", record, aside);
	if (bad == GARBAGE)
		ft_fill(bytes, len, 1);
	if (bad == TRUNCATED)
		len /= 2;
	FT_CHECK(write(out, bytes, len) == len, "%s: %m", aside);
	if (bad == FOREIGN)
		FT_CHECK(!fchown(out, OTHER_UID, OTHER_UID), "chown: %m");
	close(in);
	close(out);
}

/*
 * Replaces the name of the record by the damaged copy. The record's own file
 * stays as it is, with its lock.
 */
static void ft_spoil_record(enum bad bad)
{
	ft_find_record();
	if (bad == LINKED) {
		FT_CHECK(!rename(record, aside), "rename: %m");
		FT_CHECK(!symlink(aside, record), "symlink: %m");
		return;
	}
	ft_write_aside(bad);
	FT_CHECK(!rename(aside, record), "rename: %m");
}

/*
 * Both ranks send at the same time. The messages of each must arrive in order.
 */
static void ft_exchange_messages(void)
{
	struct ft_op tx[MESSAGES], rx[MESSAGES];
	struct ft_xfer x = { .tagged = true, .len = 64, .desc = buf.desc };
	int i, other = !ft.opts.rank;

	x.addr = e.peer[other].addr;
	for (i = 0; i < MESSAGES; i++) {
		x.buf = buf.ptr + 64 * i;
		ft_rx(&e, FT_RX_RECV, &x, &rx[i]);
	}
	for (i = 0; i < MESSAGES; i++) {
		x.buf = buf.ptr + 64 * (MESSAGES + i);
		ft_fill(x.buf, x.len, 100 * ft.opts.rank + i);
		ft_tx(&e, FT_TX_SEND, other, &x, &tx[i]);
	}
	for (i = 0; i < MESSAGES; i++) {
		ft_wait(&e, &tx[i]);
		ft_wait(&e, &rx[i]);
		ft_verify(buf.ptr + 64 * i, 64, 100 * other + i, "message");
	}
}

static void ft_check_reason(void)
{
	enum fi_duo_reason reason;
	enum fi_duo_path path;

	FT_OK(e.ops->path(e.ep, e.peer[!ft.opts.rank].addr, &path, &reason));
	FT_CHECK(reason == (ft.opts.rank ? FI_DUO_OK :
					   FI_DUO_BAD_RECORD),
		 "%s", e.ops->reason_str(reason));
}

static void ft_run_bad(enum bad bad)
{
	ft_open(&e, NULL);	/* may warn about records of exited processes */
	warnings = 0;
	ft_gather(&e);
	if (!e.ops || !e.self.shm)
		ft_skip("no shm");
	if (ft.opts.rank)
		ft_spoil_record(bad);
	else
		e.peer[1].shm = false;	/* for messages of rank 0 */
	ft_barrier();
	ft_insert(&e, 0);
	ft_insert(&e, 1);
	ft_buf_alloc(&e, &buf, 2 * 64 * MESSAGES);
	ft_exchange_messages();
	ft_check_reason();
	ft_check_tx(&e);
	FT_CHECK(ft.opts.rank || warnings == 1, "%d warnings", warnings);
	ft_barrier();
	ft_buf_free(&buf);
	ft_close_fids(&e);
	if (ft.opts.rank && bad == LINKED)
		unlink(aside);
}

static void ft_case_garbage_is_ignored(void) { ft_run_bad(GARBAGE); }
static void ft_case_truncated_record_is_ignored(void) { ft_run_bad(TRUNCATED); }
static void ft_case_symbolic_link_is_ignored(void) { ft_run_bad(LINKED); }

/* Only root can create a file of another user. */
static void ft_case_other_users_record_is_ignored(void)
{
	if (!geteuid())
		ft_run_bad(FOREIGN);
}

static const struct ft_case cases[] = {
	{ "record of garbage is ignored", ft_case_garbage_is_ignored },
	{ "truncated record is ignored", ft_case_truncated_record_is_ignored },
	{ "symbolic link is ignored", ft_case_symbolic_link_is_ignored },
	{ "other user's record is ignored",
	  ft_case_other_users_record_is_ignored },
};

static int ft_log_enabled(const struct fi_provider *prov,
			  enum fi_log_level level, enum fi_log_subsys subsys,
			  uint64_t flags)
{
	return level == FI_LOG_WARN && (!strcmp(prov->name, "ofi_duo") ||
					!strcmp(prov->name, "ofi_hook_duo"));
}

static void ft_log(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *msg)
{
	fprintf(stderr, "%s", msg);
	if (strstr(msg, WARNING))
		warnings++;
}

/* Runs the cases, and passes libfabric's log to this test. */
static void ft_run(void)
{
	static struct fi_ops_log ops = {
		.enabled = ft_log_enabled,
		.log = ft_log,
	};
	static struct fid_logging log = { .ops = &ops };

	FT_OK(fi_import_log(FT_API_VERSION, 0, &log));
	ft_run_cases(cases, FT_COUNT(cases));
	FT_OK(fi_close(&log.fid));
}

int main(int argc, char **argv)
{
	static const struct ft_spec spec = {
		.name = "bad_record",
		.nranks = 2,
		.min_ranks = 2,
		.run = ft_run,
	};

	return ft_main(argc, argv, &spec);
}
