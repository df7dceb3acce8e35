/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Records log lines. Replaces libfabric's log functions. */
#ifndef SAID_H
#define SAID_H

#include <rdma/providers/fi_log.h>

extern enum fi_log_level said_level; /* level of the lines that are counted */
extern int said_lines;
extern char said[1024];		/* text of the last line */

#endif /* SAID_H */
