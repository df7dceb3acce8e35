/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Records log lines. Replaces libfabric's log functions. */
#ifndef LOGGED_H
#define LOGGED_H

#include <rdma/providers/fi_log.h>

extern enum fi_log_level logged_level; /* level of the counted lines */
extern int logged_lines;
extern char logged[1024];		/* last line */

#endif /* LOGGED_H */
