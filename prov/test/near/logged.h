/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Replaces libfabric's log functions: records log lines for tests. */
#ifndef LOGGED_H
#define LOGGED_H

#include <rdma/providers/fi_log.h>

extern enum fi_log_level logged_level; /* only level that is enabled */
extern int logged_lines;
extern char logged[1024];		/* text of the last line */

#endif /* LOGGED_H */
