/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Macros that log a message. They are not for the data path. */
#ifndef DUO_LOG_H
#define DUO_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define DUO_NAME "ofi_duo"

/* the provider of this module; fi_prov_ini() sets its functions */
extern struct fi_provider duo_prov;

/* the directory of shm_open(3), and the remedy if it is full */
#define DUO_DEV_SHM "/dev/shm"
#define DUO_ENLARGE_DEV_SHM \
	"Enlarge " DUO_DEV_SHM " (docker --shm-size, Kubernetes emptyDir " \
	"with medium Memory, AWS Batch sharedMemorySize)"

#define DUO_WARN(sys, ...) FI_WARN(&duo_prov, FI_LOG_##sys, __VA_ARGS__)
#define DUO_INFO(sys, ...) FI_INFO(&duo_prov, FI_LOG_##sys, __VA_ARGS__)

#endif /* DUO_LOG_H */
