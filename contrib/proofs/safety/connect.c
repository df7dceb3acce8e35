/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Attaching to a peer's ring, with any bytes in the peer's segment. Asserted:
 * - the search for a claim ends;
 * - memory is reserved only for claims and for the ring's place;
 * - the sender's end of the ring has the size of the bytes that were mapped.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/peer.c near_claim near_connect_place near_connect_ring
 * C: near/link/peer.c near_doorbell_ring near_wake near_peer_wake_fd
 * C: near/link/peer.c near_disconnect
 * C: near/link/resize.c near_resize_init
 * CBMC: --unwind 66 --object-bits 10 -DHOSTILE_RACES=100
 * LONG: 5 s of CPU time
 * EDIT near/link/shm.h: s/NEAR_SENDERS 4096/NEAR_SENDERS 64/
 * MUTANT size-unchecked near/link/peer.c: s/if \(index >= adv >> NEAR_ADV_BELOW \|\|\n[\t ]*!near_place\(([^;]*)place\)\)\n[^;]*;/near_place(\1place);/
 * MUTANT size-loaded-twice near/link/peer.c: s/near_place\(growing, index, near_tier_least\(\), place\)/near_place(growing, index, hostile(segment->adv), place)/
 * MUTANT growing-of-peer near/link/peer.c: s/near_connect_place\(segment, growing,/near_connect_place(segment, hostile(segment->growing),/
 * MUTANT class-of-claim near/link/peer.c: s/near_resize_init\(&peer->resize, \(uint8_t\)place.tier/near_resize_init(\&peer->resize, (uint8_t)hostile(claim->tier)/
 * MUTANT searched-for-ever near/link/peer.c: s/for \(i = 0; i < NEAR_SENDERS; i\+\+\)/for (i = 0;; i++)/
 * MUTANT not-reserved near/link/peer.c: s/ret = near_segment_reserve\(fd, place.offset, place.size\);/ret = 0;/
 * MUTANT failure-ignored near/link/peer.c: s/if \(!ret\)\n\t\tret = near_ring_map/near_ring_map/
 * MUTANT span-forgotten near/link/peer.c: s/peer->ring_size = place.span/peer->ring_size = place.size/
 * MUTANT not-a-pipe near/link/peer.c: s/ \|\| !S_ISFIFO\(st.st_mode\)//
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rings.h"

#include "near/link/peer.c"
#include "near/link/resize.c"

static struct near_port port;
static struct near_peer peer;
static uint32_t growing;
static size_t reserved_at, reserved;	/* offset, length reserved last */
static bool mapped, pipe_checked;

off_t lseek(int fd, off_t offset, int whence)
{
	return any(off_t);
}

int near_segment_reserve(int fd, size_t offset, size_t size)
{
	if (offset < near_rings_end(growing, 0))
		check(offset >= offsetof(struct near_segment, claim) &&
		      size == NEAR_PAGE);
	if (any(bool))
		return -ENOMEM;
	reserved_at = offset;
	reserved = size;
	return 0;
}

void near_segment_clear(int fd, size_t offset, size_t size)
{
	check(offset >= near_rings_end(growing, 0) &&
	      offset + size <= near_segment_size(growing) && !mapped);
}

int near_ring_map(int fd, const struct near_place *at, void **memory)
{
	check(at->offset == reserved_at && at->size == reserved);
	check(at->offset >= sizeof(struct near_segment) &&
	      at->offset + at->span <= near_segment_size(growing));
	if (any(bool))
		return -ENOMEM;
	place = *at;
	ring = malloc(at->span);
	mapped = true;
	*memory = ring;
	return 0;
}

int munmap(void *addr, size_t len)
{
	check(mapped && addr == ring && len == place.span);
	mapped = false;
	return 0;
}

void near_segment_close(struct near_segment *segment)
{
}

/* Returns a file descriptor of the peer's pipe, or of any other file. */
int near_peer_open(const struct near_peer *of, enum near_fd_open which,
		   int theirs, int flags)
{
	pipe_checked = false;
	return any(bool) ? 3 : -EACCES;
}

int fstat(int fd, struct stat *st)
{
	st->st_mode = any(mode_t);
	pipe_checked = S_ISFIFO(st->st_mode);
	return any(bool) ? 0 : hostile_fails();
}

ssize_t write(int fd, const void *buf, size_t len)
{
	check(fd == 3 && pipe_checked);
	return any(bool) ? 1 : hostile_fails();
}

int close(int fd)
{
	check(fd == 3);
	return 0;
}

int near_peer_check_open(const struct near_peer *of)
{
	return any(bool) ? 0 : -ESRCH;
}

bool duo_proc_scarce(int fd)
{
	return any(bool);
}

void near_port_clear_poll_word(struct near_port *of)
{
}

int near_ring_extend(void *memory, size_t size)
{
	return -ENOMEM;
}

void near_peer_fail(struct near_port *of, struct near_peer *failed)
{
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

int main(void)
{
	struct near_segment *segment = malloc(sizeof(*segment));
	const struct near_tx *tx = &peer.tx;
	struct near_place most;

	near_page_assume(4096);
	growing = any(uint32_t);
	assume(growing <= NEAR_SENDERS);
	port.fence = any(bool);
	peer.far = any(bool);
	peer.wake_fd = -1;
	if (near_connect_ring(&port, &peer, segment, growing, 0))
		return 0;
	check(mapped && peer.index < NEAR_SENDERS);
	check(tx_valid(tx) && in_slots(tx->slots));
	check(in_slots(&tx->slots[tx->mask]) && in_data(tx->data, tx->dsize));
	check(peer.resize.tier == place.tier);
	check(near_place(growing, peer.index, peer.resize.most, &most));
	check(most.size <= place.span && peer.resize.tier <= peer.resize.most);
	near_disconnect(&port, &peer);
	check(!mapped);
	return 0;
}
