/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What is logged, instead of libfabric's own functions for that. */
#ifndef SAID_H
#define SAID_H

#include <rdma/providers/fi_log.h>

extern enum fi_log_level said_level;	/* of lines that count: FI_LOG_WARN */
extern int said_lines;
extern char said[1024];		/* the last one */

#endif /* SAID_H */
