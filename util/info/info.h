/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_duo_info: checks whether this host meets the requirements of ofi_duo. Each
 * check adds findings, with remedies. No check needs privileges or has effects.
 */
#ifndef INFO_H
#define INFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* Status of a finding. The worst status determines the exit status. */
enum info_status {
	INFO_OK,
	INFO_NOTE,		/* no action is needed */
	INFO_WARNING,	/* ofi_duo works, but slower or not for all ranks */
	INFO_ERROR,		/* ofi_duo cannot be used */
};

#define INFO_EXIT_WARNING 1
#define INFO_EXIT_ERROR 2
#define INFO_EXIT_MISUSE 3

/* Adds a finding of the check CHECK, one line of text. */
void info_found(const char *check, enum info_status status, const char *fmt,
		...) __attribute__((format(printf, 3, 4)));
/* Adds the remedy to the last finding. */
void info_remedy(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int info_exit_status(void);
void info_print_text(void);
void info_print_json(void);
void info_print_string(const char *text);

/* libfabric, loaded at run time. version is 0 if no libfabric can be used. */
struct info_fabric {
	uint32_t version;
	char path[PATH_MAX];
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		      void *context);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	const char *(*strerror)(int err);	/* fi_strerror() */
	int (*getparams)(struct fi_param **params, int *count);
	void (*freeparams)(struct fi_param *params);
};

void info_check_libfabric(struct info_fabric *fabric);
void info_check_module(const struct info_fabric *fabric);
/* Reports network devices, and cores that libfabric returns with ofi_duo. */
void info_check_cores(const struct info_fabric *fabric);
/* True if libfabric returns infos of the provider PROV. */
bool info_offers(const struct info_fabric *fabric, const char *prov);
/* True if one of the cores requires registered memory (FI_MR_LOCAL). */
bool info_cores_pin(void);

/* True if the value of a variable means "off". False for NULL. */
bool info_is_off(const char *value);
/* True if the caller's FI_HOOK selects the hook of ofi_duo. */
bool info_is_hooked(void);
/* True if the local transport is libfabric's shm, not near. */
bool info_local_is_shm(void);
/*
 * Returns the limit of the memory for all rings by which an endpoint of near
 * receives, bytes: see FI_OFI_DUO_RING_MEMORY in fi_duo(7).
 */
size_t info_near_memory(void);
/* Returns the space in /dev/shm that RANKS ranks of one host need, MiB. */
unsigned long info_shm_need(int ranks);
void info_print_table(int ranks);
void info_print_table_json(int ranks);
void info_check_shm(int ranks);
void info_check_memfd(void);
void info_check_cgroup(int ranks);
void info_check_memlock(void);
void info_check_files(int ranks);
void info_check_file_size(void);
void info_check_network(void);

void info_check_copy(void);
void info_check_gpu(void);
void info_check_namespaces(void);

/* Checks variables, and unsets those that hide cores from later checks. */
void info_check_environment(void);
void info_check_params(const struct info_fabric *fabric);
/*
 * Checks the caller's FI_PROVIDER. OFFERED: the names that libfabric returns,
 * or "", with which this function does nothing.
 */
void info_check_filter(const struct info_fabric *fabric, const char *offered);

/* Reads the first line of a file, without the newline. False: there is none. */
bool info_read_line(const char *path, char *line, size_t size);
bool info_read_number(const char *path, long long *number);

#endif /* INFO_H */
