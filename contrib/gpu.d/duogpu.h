/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * duogpu, for contrib/gpu: two processes of a host transfer GPU memory over
 * libfabric. main.c has processes and endpoint, cuda.c the GPU, run.c transfers
 * and verifies, table.c measures.
 */
#ifndef DUOGPU_H
#define DUOGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_duo.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define GPU_WINDOW 16		/* operations at a time, to measure bandwidth */
#define GPU_MOST (64u << 20)	/* size of each memory, bytes */
#define GPU_SKIP 77		/* exit status: not possible on this machine */

enum gpu_place { GPU_HOST, GPU_DEVICE, GPU_PLACES };
enum gpu_kind { GPU_WRITE, GPU_READ, GPU_TAGGED, GPU_KINDS };
/*
 * Steps of rank 1, requested by gpu_shared.step. ECHO: receive messages, and
 * send each back; SINK: receive messages; CHECK: fill memory, or compare it;
 * SETTLE: wait for the GPU; END: exit. In IDLE, rank 1 only makes progress.
 */
enum gpu_step {
	GPU_IDLE, GPU_ECHO, GPU_SINK, GPU_CHECK, GPU_SETTLE, GPU_END
};

struct gpu_shared {
	/* number of barriers that each rank has entered */
	uint32_t arrived[2];
	uint32_t step;			/* the next step of rank 1 */
	uint8_t name[2][512];
	size_t name_len[2];
	uint64_t key[2][GPU_PLACES], base[2][GPU_PLACES];
	struct {			/* arguments of the step */
		enum gpu_place place;
		size_t offset, len;
		unsigned int seed;
		bool fill;
	} check;
	uint32_t checked; /* number of steps that rank 1 has completed */
	int lost; /* number of messages that did not reach rank 1 */
	/*
	 * number of operations of each rank in which a GPU copied directly,
	 * because one process had mapped the other's GPU memory
	 */
	uint64_t mapped[2];
	/* number of operations of each rank that the other rank's GPU copied */
	uint64_t lent[2];
	bool wrong;
	/* writes use FI_DELIVERY_COMPLETE; gpu_settle() follows operations */
	bool settle;
};

extern struct gpu {
	int rank;
	struct gpu_shared *sh;
	const char *prov, *alloc;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	char *place[GPU_PLACES];
	struct fid_mr *mr[GPU_PLACES];
	int errors; /* number of completions with an error */
} gpu;

#define GPU_FAIL(...) do { \
	fprintf(stderr, "duogpu: rank %d: ", gpu.rank); \
	fprintf(stderr, __VA_ARGS__); \
	fputc('\n', stderr); \
	exit(1); \
} while (0)
#define GPU_OK(call) do { \
	long ret_ = (long) (call); \
	if (ret_) \
		GPU_FAIL("%s: %ld", #call, ret_); \
} while (0)

/* main.c */
/* Waits until the other rank has entered. Makes progress. */
void gpu_barrier(void);
/* Stores this rank's counts in gpu_shared.mapped and gpu_shared.lent. */
void gpu_mapped(void);

/* cuda.c: the driver API's functions by name; NULL: not in this driver */
extern struct gpu_cuda {
	int (*init)(unsigned int flags);
	int (*count)(int *devices);
	int (*name)(char *name, int len, int device);
	int (*retain)(void **context, int device);
	int (*current)(void *context);
	int (*alloc)(uint64_t *at, size_t len);
	int (*alloc_pool)(uint64_t *at, size_t len, void *stream);
	int (*alloc_managed)(uint64_t *at, size_t len, unsigned int flags);
	int (*reserve)(uint64_t *at, size_t len, size_t align, uint64_t addr,
		       uint64_t flags);
	int (*create)(uint64_t *handle, size_t len, const void *prop,
		      uint64_t flags);
	int (*map)(uint64_t at, size_t len, size_t offset, uint64_t handle,
		   uint64_t flags);
	int (*access)(uint64_t at, size_t len, const void *desc, size_t count);
	int (*out)(void *to, uint64_t from, size_t len);
	int (*in)(uint64_t to, const void *from, size_t len);
	int (*copy)(uint64_t to, uint64_t from, size_t len, void *stream);
	int (*copy_peer)(uint64_t to, void *to_context, uint64_t from,
			 void *from_context, size_t len, void *stream);
	int (*wait)(void);
	int (*peer)(void *context, unsigned int flags);
	int (*host)(void **at, size_t len);
} cuda;
extern int gpu_device;	/* number of this rank's GPU */
/* Opens this rank's GPU. Without one, exits with GPU_SKIP. */
void gpu_cuda_open(void);
char *gpu_cuda_alloc(const char *kind, size_t len);
/*
 * Memory of another GPU, allocated in this process by gpu_cuda_other(). That
 * function returns false if there is only one GPU.
 */
struct gpu_other {
	uint64_t at;
	/* CUDA contexts of the other GPU and of this rank's GPU */
	void *context, *mine;
};
bool gpu_cuda_other(struct gpu_other *other, size_t len);

/* run.c */
extern const char *const gpu_kinds[], *const gpu_places[];
double gpu_now(void);	/* time, s */
/* Waits for this number of completions, and counts errors. */
void gpu_complete(int count);
void gpu_start(enum gpu_kind kind, enum gpu_place mine, enum gpu_place theirs,
	       size_t offset, size_t len);
void gpu_receive(enum gpu_place mine, size_t offset, size_t len);
void gpu_next(enum gpu_step step);
/*
 * Waits for the end of a step: until gpu_shared.checked differs from `checked`,
 * its value before the step.
 */
void gpu_await(uint32_t checked);
/*
 * Waits for all copies that either rank's GPU executes for operations of this
 * kind. For messages, rank 1 already waits before it ends its step.
 */
void gpu_settle(enum gpu_kind kind);
/* Executes an operation. True if it transferred the right data, or failed. */
bool gpu_right(enum gpu_kind kind, enum gpu_place mine, enum gpu_place theirs,
	       size_t offset, size_t len, unsigned int seed);
void gpu_verify(unsigned int count);
void gpu_kill(pid_t child);
void gpu_serve(void);

/* table.c */
void gpu_table(void);
void gpu_times(void);

#endif /* DUOGPU_H */
