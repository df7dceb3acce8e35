/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * duogpu PROVIDER COMMAND [COUNT [ALLOCATION]]
 *
 *	table	latency and bandwidth, by size, path and place of the memory
 *	times	lines "OPERATION|BYTES|US|RIGHT" for contrib/gpu --beside;
 *		RIGHT is 0 if an operation completed before all its bytes were
 *		in the destination
 *	verify	COUNT random transfers, verified. ALLOCATION: plain,
 *		pool, managed, vmm (cuMemCreate, shareable), private (same,
 *		not shareable), pinned (as plain; the driver allocates the host
 *		memory)
 *	kill	a peer is killed while it is written to
 *
 * DUOGPU_DISJOINT=1: each process sees only one GPU, not its peer's.
 * DUOGPU_PIDNS=1: the two processes are in different pid namespaces.
 * DUOGPU_MAPPED=1: at least one RMA operation and one message must be mapped:
 * one process has mapped the other's GPU memory, and a GPU copies directly
 * between the memory of both. verify continues until there are both, and duogpu
 * fails if one is missing at the end.
 * DUOGPU_MAPPED=0: duogpu fails if an operation or message is mapped.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "duogpu.h"

struct gpu gpu;

void gpu_barrier(void)
{
	uint32_t *mine = &gpu.sh->arrived[gpu.rank];
	uint32_t *other = &gpu.sh->arrived[!gpu.rank];
	uint32_t round = __atomic_add_fetch(mine, 1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(other, __ATOMIC_SEQ_CST) < round)
		if (gpu.cq)
			fi_cq_read(gpu.cq, NULL, 0);
}

static void gpu_info(void)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_LOCAL |
		FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(gpu.prov);
	ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &gpu.info);
	fi_freeinfo(hints);
	if (ret) {
		printf("skipped: %s has no FI_HMEM here: %s\n", gpu.prov,
		       fi_strerror(-ret));
		fflush(stdout);
		exit(GPU_SKIP);
	}
}

static void gpu_region(enum gpu_place place)
{
	const struct iovec iov = { gpu.place[place], GPU_MOST };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .requested_key = 1 + place,
		.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
			  FI_REMOTE_READ | FI_REMOTE_WRITE,
		.iface = place == GPU_DEVICE ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
		.device.cuda = gpu_device,
	};

	/* without this flag libfabric's shm does not use CUDA's IPC */
	GPU_OK(fi_mr_regattr(gpu.domain, &attr, place == GPU_DEVICE &&
			     strcmp(gpu.alloc, "managed") ?
			     FI_HMEM_DEVICE_ONLY : 0, &gpu.mr[place]));
	gpu.sh->key[gpu.rank][place] = fi_mr_key(gpu.mr[place]);
	gpu.sh->base[gpu.rank][place] =
		gpu.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
		(uintptr_t) gpu.place[place] : 0;
}

static void gpu_open(void)
{
	struct fi_cq_attr cq = { .size = 4096, .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	gpu_info();
	gpu_cuda_open();
	if (!strcmp(gpu.alloc, "pinned"))
		GPU_OK(cuda.host((void **) &gpu.place[GPU_HOST], GPU_MOST));
	else
		gpu.place[GPU_HOST] = aligned_alloc(4096, GPU_MOST);
	gpu.place[GPU_DEVICE] = gpu_cuda_alloc(gpu.alloc, GPU_MOST);
	GPU_OK(fi_fabric(gpu.info->fabric_attr, &gpu.fabric, NULL));
	GPU_OK(fi_domain(gpu.fabric, gpu.info, &gpu.domain, NULL));
	GPU_OK(fi_av_open(gpu.domain, &av, &gpu.av, NULL));
	GPU_OK(fi_cq_open(gpu.domain, &cq, &gpu.cq, NULL));
	GPU_OK(fi_endpoint(gpu.domain, gpu.info, &gpu.ep, NULL));
	GPU_OK(fi_ep_bind(gpu.ep, &gpu.av->fid, 0));
	GPU_OK(fi_ep_bind(gpu.ep, &gpu.cq->fid, FI_TRANSMIT | FI_RECV));
	GPU_OK(fi_enable(gpu.ep));
	gpu_region(GPU_DEVICE);
	/*
	 * Host memory comes after device memory: ofi_duo pins a host region by
	 * the CUDA context of an open device region.
	 */
	gpu_region(GPU_HOST);
	gpu.sh->name_len[gpu.rank] = sizeof(gpu.sh->name[0]);
	GPU_OK(fi_getname(&gpu.ep->fid, gpu.sh->name[gpu.rank],
			  &gpu.sh->name_len[gpu.rank]));
	gpu_barrier();
	if (fi_av_insert(gpu.av, gpu.sh->name[!gpu.rank], 1, &gpu.peer, 0,
			 NULL) != 1)
		GPU_FAIL("fi_av_insert");
}

static const char *gpu_text(const char *text)
{
	return text ? text : "none";
}

void gpu_mapped(void)
{
	struct fi_duo_stats stats;
	struct fi_ops_duo *ops;
	const char *way;
	unsigned int i;
	uint64_t count;

	if (fi_open_ops(&gpu.ep->fid, FI_DUO_OPS, 0, (void **) &ops, NULL) ||
	    ops->stats(gpu.ep, &stats, sizeof(stats)))
		return;
	gpu.sh->mapped[gpu.rank] = stats.device_rma_mapped;
	for (i = 0; (way = ops->device_count(gpu.ep, i, &count)); i++)
		if (strstr(way, "peer's GPU"))
			gpu.sh->lent[gpu.rank] = count;
}

/*
 * Prints the paths of this rank's operations. Fails if ofi_duo has passed RMA
 * to the core provider, or if DUOGPU_MAPPED requires another count of mapped
 * operations.
 */
static void gpu_print_path(void)
{
	struct fi_duo_stats stats;
	struct fi_ops_duo *ops;
	const char *mapped = getenv("DUOGPU_MAPPED"), *way;
	unsigned int i;
	uint64_t count;

	if (fi_open_ops(&gpu.ep->fid, FI_DUO_OPS, 0, (void **) &ops, NULL) ||
	    ops->stats(gpu.ep, &stats, sizeof(stats)))
		return;
	printf("rank %d: RMA %lu local (%lu of GPU memory, %lu mapped), %lu "
	       "core; messages %lu local (%lu of GPU memory), %lu core\n",
	       gpu.rank,
	       (unsigned long) stats.rma_ops[FI_DUO_LOCAL],
	       (unsigned long) stats.device_rma_ops,
	       (unsigned long) stats.device_rma_mapped,
	       (unsigned long) stats.rma_ops[FI_DUO_CORE],
	       (unsigned long) stats.path[FI_DUO_LOCAL].tx_msgs,
	       (unsigned long) stats.device_tx_msgs,
	       (unsigned long) stats.path[FI_DUO_CORE].tx_msgs);
	printf("rank %d: last RMA of GPU memory: %s\n", gpu.rank,
	       gpu_text(ops->device_path(gpu.ep, gpu.peer)));
	for (i = 0; (way = ops->device_count(gpu.ep, i, &count)); i++)
		if (count)
			printf("rank %d: %lu %s\n", gpu.rank,
			       (unsigned long) count, way);
	if (strcmp(gpu.prov, "near") && stats.rma_ops[FI_DUO_CORE] &&
	    strstr(gpu.prov, "duo"))
		GPU_FAIL("the core has executed RMA");
	/* in rank 1, which posts no RMA, the count is of received messages */
	if (mapped && !!stats.device_rma_mapped != atoi(mapped))
		GPU_FAIL("GPU memory was %smapped", atoi(mapped) ? "not " : "");
}

static void gpu_close(void)
{
	gpu_print_path();
	GPU_OK(fi_close(&gpu.ep->fid));
	GPU_OK(fi_close(&gpu.mr[GPU_HOST]->fid));
	GPU_OK(fi_close(&gpu.mr[GPU_DEVICE]->fid));
	GPU_OK(fi_close(&gpu.cq->fid));
	GPU_OK(fi_close(&gpu.av->fid));
	GPU_OK(fi_close(&gpu.domain->fid));
	GPU_OK(fi_close(&gpu.fabric->fid));
	fi_freeinfo(gpu.info);
}

static void gpu_command(const char *command, unsigned int count, pid_t child)
{
	gpu_open();
	gpu_barrier();
	if (gpu.rank)
		gpu_serve();
	else if (!strcmp(command, "table"))
		gpu_table();
	else if (!strcmp(command, "times"))
		gpu_times();
	else if (!strcmp(command, "verify"))
		gpu_verify(count);
	else
		gpu_kill(child);
	if (strcmp(command, "kill"))
		gpu_barrier();
	gpu_close();
}

static int gpu_child_status = -1;	/* -1: the child has not ended */

/*
 * SIGCHLD: ends rank 0 if the child has failed. Otherwise rank 0 would wait for
 * the child forever.
 */
static void gpu_child_ended(int sig)
{
	if (waitpid(-1, &gpu_child_status, WNOHANG) > 0 &&
	    WIFEXITED(gpu_child_status) && WEXITSTATUS(gpu_child_status))
		_exit(WEXITSTATUS(gpu_child_status));
}

/* Mounts this pid namespace's /proc, in which the driver finds this process. */
static void gpu_own_proc(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL)) {
		printf("skipped: mount of /proc: %s\n", strerror(errno));
		fflush(stdout);
		exit(GPU_SKIP);
	}
}

int main(int argc, char **argv)
{
	pid_t child;
	int ns;

	if (argc < 3) {
		fprintf(stderr, "usage: duogpu PROVIDER table|times|verify|kill "
			"[COUNT [ALLOCATION]]\n");
		return 2;
	}
	gpu.prov = argv[1];
	gpu.alloc = argc > 4 ? argv[4] : "plain";
	gpu.sh = mmap(NULL, sizeof(*gpu.sh), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (getenv("DUOGPU_PIDNS") && unshare(CLONE_NEWPID)) {
		printf("skipped: unshare: %s\n", strerror(errno));
		return GPU_SKIP;
	}
	signal(SIGCHLD, gpu_child_ended);
	child = fork();
	gpu.rank = !child;
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!child && getenv("DUOGPU_PIDNS"))
		gpu_own_proc();
	/* undoes unshare(): with CLONE_NEWPID rank 0 could not start threads */
	else if (getenv("DUOGPU_PIDNS"))
		GPU_OK(setns(ns, CLONE_NEWPID));
	if (getenv("DUOGPU_DISJOINT"))
		setenv("CUDA_VISIBLE_DEVICES", gpu.rank ? "1" : "0", 1);
	/* ends this rank if the other one has failed */
	alarm(600);
	gpu_command(argv[2], argc > 3 ? (unsigned int) atoi(argv[3]) : 1000,
		    child);
	if (!child)
		return 0;
	while (gpu_child_status < 0)
		usleep(1000);
	return strcmp(argv[2], "kill") ? !WIFEXITED(gpu_child_status) :
					 !WIFSIGNALED(gpu_child_status);
}
