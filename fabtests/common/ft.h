/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions that all test programs share. A program consists of ranks; each
 * rank is a process. Without -r the program forks its ranks on this host. With
 * -r, -n and -o, fabtests/run starts each rank, maybe in its own network
 * namespace. Rank 0 then serves the out-of-band exchange.
 *
 * Exit status: 0 passed, 1 failed, 77 skipped, 3 another rank exited. A failed
 * check ends the process at once, and all other ranks end with status 3.
 */
#ifndef FT_H
#define FT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_duo.h>

#define FT_MAX_RANKS 32
#define FT_MAX_EPS 64
#define FT_NAME_MAX 256
#if FI_MAJOR_VERSION < 2
#define FT_API_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#else
#define FT_API_VERSION FI_VERSION(2, 0)
#endif
#define FT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { FT_PASS = 0, FT_FAIL = 1, FT_GONE = 3, FT_SKIP = 77 };

struct ft_opts {
	const char *prov;	/* -p: provider name, e.g. "tcp;ofi_duo" */
	const char *src;	/* -s: source address */
	const char *oob;	/* -o: HOST:PORT of rank 0 */
	const char *host; /* -H: name of the host that this rank simulates */
	const char *only;	/* -c: run this case only */
	int rank;		/* -r: number of this rank */
	int nranks;		/* -n: number of ranks */
	int timeout;		/* -T: seconds until the program gives up */
	unsigned int seed;	/* -x: seed of random numbers */
	size_t max_size;	/* -S: largest message */
	bool quick;		/* -q: fewer iterations */
};

/* An endpoint, as its rank describes it to the other ranks. */
struct ft_peer {
	char name[FT_NAME_MAX];
	size_t namelen;
	char host[32];
	bool duo;		/* its rank runs ofi_duo */
	bool shm;		/* its rank may use the local transport */
	fi_addr_t addr;		/* fi_addr in this process */
};

/* A pending operation. Its address is the operation's context. */
struct ft_op {
	struct fi_context2 ctx;
	atomic_int done;	/* number of completions: must become 1 */
	int err;		/* FI_E* of its error entry; 0: success */
	int prov_errno;
	uint64_t flags;
	uint64_t tag;
	uint64_t data;
	size_t len;
	size_t olen;
	/* source of a receive; FI_ADDR_NOTAVAIL without FI_SOURCE */
	fi_addr_t src;
	/* source of an error entry; libfabric 2.0 and later */
	fi_addr_t err_src;
	bool repeats;	/* its error may be reported several times */
	bool uncounted;	/* a peek or discard: not counted as a receive */
	/*
	 * if set: called for each completion, and only an error ends the
	 * operation
	 */
	void (*each)(struct ft_op *op, const struct fi_cq_tagged_entry *entry,
		     fi_addr_t src);
};

struct ft_buf {
	uint8_t *ptr;
	size_t len;
	struct fid_mr *mr;
	void *desc;
};

/* Configuration of an endpoint. Most tests leave all members 0. */
struct ft_cfg {
	/*
	 * API version for fi_getinfo(), unless FT_API_VERSION is lower; 0:
	 * FT_API_VERSION
	 */
	uint32_t api;
	uint64_t caps;		/* capabilities besides FI_MSG | FI_TAGGED */
	uint64_t order;		/* orders besides FI_ORDER_SAS */
	enum fi_threading threading;
	enum fi_av_type av_type;
	enum fi_progress control_progress, data_progress;
	enum fi_wait_obj wait_obj;
	enum fi_cq_format format; /* FI_CQ_FORMAT_UNSPEC: FI_CQ_FORMAT_TAGGED */
	size_t cq_size;
	uint64_t tx_bind; /* flags of the bind, e.g. FI_SELECTIVE_COMPLETION */
	uint64_t rx_bind;
	bool separate_cqs;
	bool any_buffer; /* buffers need no registration: no FI_MR_LOCAL */
	bool counters; /* open one counter for sends and one for receives */
	bool bind_late;		/* bind the counters after fi_enable() */
	bool no_cqs; /* bind no CQs; the counters have wait_obj instead */
	bool eq;		/* bind an event queue, which is not read */
	bool raw;		/* the test itself reads the CQs */
	bool plain; /* with -p "CORE;ofi_duo": open CORE without ofi_duo */
	void (*hints)(struct fi_info *hints);	/* changes the hints */
	const void *src;	/* source address, instead of -s */
	size_t src_len;
	uint32_t addr_format;	/* address format of src */
	/* endpoint whose fabric and domain are used */
	struct ft_ep *share;
	bool by_fids;		/* the hints have the fids of share's objects */
	bool unnamed; /* with by_fids: the hints have no provider name */
	bool share_av;
	bool share_cq;
};

struct ft_ep {
	struct ft_cfg cfg;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_eq *eq;
	struct fid_cq *txcq;
	struct fid_cq *rxcq;
	struct fid_cntr *tx_cntr;
	struct fid_cntr *rx_cntr;
	struct fid_ep *ep;
	struct fi_ops_duo *ops;	/* NULL: the provider is not ofi_duo */
	struct ft_peer self;
	struct ft_peer peer[FT_MAX_RANKS];
	/*
	 * the test's own counts, to compare with the provider's statistics:
	 * sends over each path, sends to each rank, completed receives
	 */
	atomic_uint_fast64_t tx[FI_DUO_PATH_COUNT];
	atomic_uint_fast64_t tx_to[FT_MAX_RANKS];
	atomic_uint_fast64_t rx_ok;
};

struct ft_case {
	const char *name;
	void (*run)(void);
};

extern const struct ft_spec {
	const char *name;
	int nranks;		/* number of ranks if there is no -r */
	int min_ranks;
	const char *opts; /* further option letters for getopt() */
	void (*opt)(int letter, const char *arg);
	void (*run)(void);
} ft_spec;

struct ft_state {
	struct ft_opts opts;
	const char *phase;	/* name of the current phase, for messages */
	struct ft_ep *eps[FT_MAX_EPS];
	int neps;
	bool together; /* a wait makes progress on all endpoints of the rank */
};

extern struct ft_state ft;

/* main.c */
void ft_run_cases(const struct ft_case *cases, size_t count);
void ft_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void ft_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
uint64_t ft_now_ns(void);
void ft_rand_seed(unsigned int salt);
unsigned int ft_rand(unsigned int below);

#define FT_DIE(...) ft_fail(__FILE__, __LINE__, __VA_ARGS__)
#define FT_CHECK(cond, ...) \
	do { \
		if (!(cond)) \
			ft_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
#define FT_OK(call) \
	do { \
		long ft_ret_ = (call); \
		if (ft_ret_) \
			ft_fail(__FILE__, __LINE__, "%s: %ld (%s)", #call, \
				ft_ret_, fi_strerror((int)-ft_ret_)); \
	} while (0)

/* oob.c: while they wait, these functions make progress on open endpoints */
/* In a forked rank: fd is this rank's end of a socket pair with "rank". */
void ft_oob_adopt(int rank, int fd);
void ft_oob_connect(const char *host_port);
void ft_allgather(const void *in, size_t len, void *out);
void ft_barrier(void);
/* The first call enters the barrier. Returns true if all ranks have entered. */
bool ft_barrier_try(void);

/* fabric.c */
void ft_open(struct ft_ep *e, const struct ft_cfg *cfg);
void ft_exchange(struct ft_ep *e);	/* exchanges names and inserts them */
void ft_gather(struct ft_ep *e);	/* exchanges names only */
void ft_insert(struct ft_ep *e, int rank);
void ft_close(struct ft_ep *e);	/* called by all ranks; checks the paths */
void ft_close_fids(struct ft_ep *e);
void ft_buf_alloc(struct ft_ep *e, struct ft_buf *buf, size_t len);
void ft_buf_free(struct ft_buf *buf);
/* True if the core alone supports cfg with these capabilities and orders. */
bool ft_offers(const struct ft_cfg *cfg, uint64_t caps, uint64_t order);
/* Calls fi_getinfo() for this configuration, and returns its result. */
int ft_getinfo_as(const struct ft_cfg *cfg, const char *prov,
		  struct fi_info **info);
/* True if this rank runs ofi_duo, as a provider or as a hook. */
bool ft_wraps(void);
bool ft_has_prefix(const char *prov, const char *core);
bool ft_no_data_flag(void);
bool ft_shares_av(void);
bool ft_over_tcp(void);	/* the core is tcp itself, not ofi_rxm over tcp */
bool ft_directs_untagged(const struct ft_ep *e);
bool ft_cancels_directed(const struct ft_ep *e);

/* path.c */
enum fi_duo_path ft_path(const struct ft_ep *e, int rank);
void ft_check_tx(struct ft_ep *e);
void ft_check_rx(struct ft_ep *e);	/* called by all ranks */
void ft_stats(struct ft_ep *e, struct fi_duo_stats *stats);

/* xfer.c */
enum ft_tx {
	FT_TX_SEND, FT_TX_SENDV, FT_TX_SENDMSG, FT_TX_SENDMSG_DATA,
	FT_TX_INJECT, FT_TX_SENDDATA, FT_TX_INJECTDATA, FT_TX_COUNT
};

enum ft_rx { FT_RX_RECV, FT_RX_RECVV, FT_RX_RECVMSG, FT_RX_COUNT };

struct ft_xfer {
	void *buf;
	size_t len;
	void *desc;
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	bool tagged;
	fi_addr_t addr;		/* address for receives; sends use a rank */
};

extern const char *const ft_tx_name[FT_TX_COUNT];
extern const char *const ft_rx_name[FT_RX_COUNT];

bool ft_tx_is_inject(enum ft_tx how);
bool ft_tx_has_data(enum ft_tx how);
ssize_t ft_tx_try(struct ft_ep *e, enum ft_tx how, fi_addr_t addr,
		  const struct ft_xfer *x, struct ft_op *op);
void ft_tx(struct ft_ep *e, enum ft_tx how, int rank, const struct ft_xfer *x,
	   struct ft_op *op);
ssize_t ft_rx_try(struct ft_ep *e, enum ft_rx how, const struct ft_xfer *x,
		  struct ft_op *op);
void ft_rx(struct ft_ep *e, enum ft_rx how, const struct ft_xfer *x,
	   struct ft_op *op);
void ft_tx_counted(struct ft_ep *e, int rank);

int ft_progress(struct ft_ep *e);	/* returns the number of completions */
int ft_progress_all(void);
int ft_progress_in_wait(struct ft_ep *e);
void ft_progress_for(struct ft_ep *e, unsigned int ms);
void ft_op_reset(struct ft_op *op);
/* Wait for an operation. ft_wait() fails the test if the operation failed. */
void ft_wait_any(struct ft_ep *e, struct ft_op *op);
void ft_wait(struct ft_ep *e, struct ft_op *op);
void ft_wait_err(struct ft_ep *e, struct ft_op *op, int err);

/* pattern.c */
void ft_fill(void *buf, size_t len, unsigned int seed);
void ft_verify(const void *buf, size_t len, unsigned int seed,
	       const char *what);

/* Repeats a call while it returns -FI_EAGAIN, with progress in between. */
#define FT_RETRY(e, call) \
	({ \
		ssize_t ft_retry_; \
		while ((ft_retry_ = (call)) == -FI_EAGAIN) \
			ft_progress_in_wait(e); \
		ft_retry_; \
	})

#endif /* FT_H */
