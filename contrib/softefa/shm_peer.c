/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The rings of peers, found by file name, and mapped while there is a flow. A
 * peer is alive if its ring's file is locked. Unlike a process id, a lock means
 * the same in every pid namespace, and a zombie holds none.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softefa.h"
#include "wire_shm.h"

void se_shm_path(char path[SE_SHM_PATH], const union ibv_gid *gid,
		 uint32_t qpn)
{
	char hex[33];

	se_gid_hex(gid, hex);
	snprintf(path, SE_SHM_PATH, "%s/q-%s-%u", se_cfg.dir, hex, qpn);
}

uint32_t se_shm_id(const struct stat *st)
{
	uint32_t id = (uint32_t)st->st_ino;

	return id ? id : 1;
}

/*
 * Returns 0 if the file is the ring with this id (0: any id) and its owner is
 * alive, ENOENT if not, or another errno.
 */
static int se_shm_owned(int dir, const char *name, uint32_t id)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int ret = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st))
		ret = errno;
	else if ((id && se_shm_id(&st) != id) || se_file_orphaned(fd))
		ret = ENOENT;
	close(fd);
	return ret;
}

bool se_shm_id_alive(uint32_t id)
{
	DIR *dir = opendir(se_cfg.dir);
	struct dirent *entry;
	bool alive = false;
	struct stat st;

	if (!dir)
		return errno != ENOENT;
	while (!alive && (entry = readdir(dir))) {
		if (!se_ring_name(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) ||
		    se_shm_id(&st) != id)
			continue;
		alive = se_shm_owned(dirfd(dir), entry->d_name, id) != ENOENT;
	}
	closedir(dir);
	return alive;
}

/*
 * Returns SE_REMOTE_BAD_DEST_QPN if the peer's QP does not exist: its ring is
 * marked as dead (ibv_destroy_qp()), or not locked (the peer was killed).
 * Otherwise returns SE_OK.
 */
enum se_status se_shm_alive(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = flow->wire_flow;
	char path[SE_SHM_PATH];

	if (peer && atomic_load(&peer->ring->dead))
		return SE_REMOTE_BAD_DEST_QPN;
	se_shm_path(path, &flow->gid, flow->qpn);
	if (se_shm_owned(AT_FDCWD, path, peer ? peer->id : 0) == ENOENT)
		return SE_REMOTE_BAD_DEST_QPN;
	return SE_OK;
}

void se_shm_flow_close(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = flow->wire_flow;

	if (!peer)
		return;
	flow->wire_flow = NULL;
	se_doorbell_tx_close(&peer->bell);
	munmap(peer->ring, peer->size);
	free(peer);
}

/* Maps the ring. Returns 0, EAGAIN (not initialized yet) or another errno. */
static int se_shm_map(struct se_shm_peer *peer, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if ((size_t)st.st_size < sizeof(*peer->ring))
		return EAGAIN;
	peer->id = se_shm_id(&st);
	peer->size = (size_t)st.st_size;
	peer->ring = mmap(NULL, peer->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
	if (peer->ring == MAP_FAILED)
		return errno;
	if (se_ring_valid(peer->ring, peer->size))
		return 0;
	munmap(peer->ring, peer->size);
	return EAGAIN;
}

static int se_shm_peer_open(struct se_shm_peer *peer, const char *path)
{
	int ret, fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno;
	ret = se_shm_map(peer, fd);
	close(fd);
	if (ret)
		return ret;
	ret = se_doorbell_tx_init(&peer->bell, path);
	if (ret)
		munmap(peer->ring, peer->size);
	return ret;
}

/*
 * Reports on stderr that a peer's ring cannot be opened, if err is not that of
 * the last report. If descriptors or memory are lacking, the flow does not
 * fail: srd.c tries to send again later.
 */
static void se_shm_complain(const char *path, int err)
{
	static _Atomic int last;

	if (atomic_exchange(&last, err) != err)
		fprintf(stderr, "softefa: %s: %s; a message waits for this, "
			"raise the limit (ulimit -n, -v)\n",
			path, strerror(err));
}

int se_shm_connect(struct se_qp *qp, struct se_flow *flow)
{
	struct se_shm_peer *peer = calloc(1, sizeof(*peer));
	char path[SE_SHM_PATH];
	int ret;

	if (!peer)
		return -EAGAIN;
	se_shm_path(path, &flow->gid, flow->qpn);
	ret = se_shm_peer_open(peer, path);
	if (!ret) {
		flow->wire_flow = peer;
		return 0;
	}
	free(peer);
	if (ret == EAGAIN)
		return -EAGAIN;
	if (ret != ENOENT) {
		se_shm_complain(path, ret);
		return ret == EMFILE || ret == ENFILE || ret == ENOMEM ?
			-EAGAIN : SE_UNREACH_REMOTE;
	}
	if (!se_gid_known(&flow->gid) &&
	    !se_gid_equal(&flow->gid, &qp->dev->gid))
		return SE_UNREACH_REMOTE;
	return SE_REMOTE_BAD_DEST_QPN;
}
