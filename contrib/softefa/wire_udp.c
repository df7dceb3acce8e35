/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The UDP wire: a socket per QP. The GID contains the socket's IPv4 address.
 * The QPN is the socket's port. When a process exits, the kernel closes its
 * sockets, and answers the next packet to a closed port with an ICMP error. A
 * failed host sends nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netid.h"
#include "softefa.h"

#define SE_UDP_MAX 65536
#define SE_UDP_BUFFER (8 << 20)

/* A secret authenticates the sender, if only trusted users can read packets. */
struct se_udp_header {
	uint64_t secret;
	struct se_pkt pkt;
};

struct se_udp_qp {
	int fd;
	bool failed; /* a call has failed: the error queue may have an entry */
	_Alignas(struct se_udp_header) uint8_t buf[SE_UDP_MAX];
};

static int se_udp_socket(struct in_addr addr, uint32_t *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = addr };
	int fd, on = 1, size = SE_UDP_BUFFER;
	socklen_t len = sizeof(sin);

	fd = se_fork_socket();
	if (fd < 0)
		return -1;
	/*
	 * The FORCE options may exceed the system's limits, but need
	 * CAP_NET_ADMIN. Otherwise the limits apply.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&sin, len) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len)) {
		se_fork_close(fd);
		return -1;
	}
	*port = ntohs(sin.sin_port);
	return fd;
}

static int se_udp_open(struct se_qp *qp)
{
	struct in_addr addr = se_netid_gid_addr(&qp->dev->gid);
	struct se_udp_qp *uq = calloc(1, sizeof(*uq));
	uint32_t i, port;

	if (!uq)
		return ENOMEM;
	for (i = 0; i < 10000; i++) {
		uq->fd = se_udp_socket(addr, &port);
		if (uq->fd < 0)
			break;
		if (se_qpn_take(qp->dev, port)) {
			qp->ex.qp_base.qp_num = port;
			qp->wire_qp = uq;
			return 0;
		}
		se_fork_close(uq->fd);
	}
	free(uq);
	return i < 10000 ? errno : ENOMEM;
}

static void se_udp_close(struct se_qp *qp)
{
	struct se_udp_qp *uq = qp->wire_qp;

	qp->wire_qp = NULL;
	se_fork_close(uq->fd);
	free(uq);
}

/*
 * Sends a packet. If sendmsg() fails, calls it again, because the error may be
 * that of an earlier packet. The kernel reports an error to one call only. So
 * this function sets "failed", and se_udp_rx() reads the socket's error queue,
 * which has the destination of the packet with the error.
 */
static int se_udp_tx(struct se_qp *qp, struct se_flow *flow,
		     const struct se_pkt *pkt, const struct iovec *iov,
		     int iov_count, uint64_t *cookie)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr = se_netid_gid_addr(&flow->gid),
		.sin_port = htons((uint16_t)flow->qpn),
	};
	struct iovec vec[SE_MAX_IOV + 2];
	struct msghdr msg = {
		.msg_name = &sin,
		.msg_namelen = sizeof(sin),
		.msg_iov = vec,
		.msg_iovlen = (size_t)iov_count + 2,
	};
	struct se_udp_qp *uq = qp->wire_qp;
	int i, tries;

	*cookie = 0;
	vec[0].iov_base = &se_cfg.secret;
	vec[0].iov_len = sizeof(se_cfg.secret);
	vec[1].iov_base = (void *)(uintptr_t)pkt;
	vec[1].iov_len = sizeof(*pkt);
	for (i = 0; i < iov_count; i++)
		vec[i + 2] = iov[i];
	for (tries = 0; tries < 3; tries++) {
		if (sendmsg(uq->fd, &msg, MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EAGAIN || errno == ENOBUFS)
			return -EAGAIN;
		uq->failed = true;
	}
	return 0; /* the packet is lost: a timer retransmits it */
}

static void se_udp_unreachable(struct se_qp *qp, struct sockaddr_in *sin,
			       const struct sock_extended_err *err)
{
	bool port = err->ee_errno == ECONNREFUSED;
	struct se_flow *flow;
	int i;

	if (err->ee_origin != SO_EE_ORIGIN_ICMP)
		return;
	for (i = 0; i < SE_FLOW_HASH; i++) {
		for (flow = qp->flows[i]; flow; flow = flow->next) {
			if (flow->qpn != ntohs(sin->sin_port) ||
			    se_netid_gid_addr(&flow->gid).s_addr !=
				    sin->sin_addr.s_addr)
				continue;
			if (port) {
				se_flow_fail(qp, flow, SE_REMOTE_BAD_DEST_QPN);
				flow->quiet_since = SE_FLOW_REFUSED;
			} else if (!flow->responsive) {
				se_flow_fail(qp, flow, SE_UNREACH_REMOTE);
			}
		}
	}
}

/* Reads an entry of the error queue. Returns false if there is none. */
static bool se_udp_error(struct se_qp *qp, struct se_udp_qp *uq)
{
	struct sock_extended_err err;
	struct sockaddr_in sin;
	char control[512];
	struct iovec vec = { uq->buf, sizeof(uq->buf) };
	struct msghdr msg = {
		.msg_name = &sin,
		.msg_namelen = sizeof(sin),
		.msg_iov = &vec,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (recvmsg(uq->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != IPPROTO_IP ||
		    cmsg->cmsg_type != IP_RECVERR)
			continue;
		memcpy(&err, CMSG_DATA(cmsg), sizeof(err));
		se_udp_unreachable(qp, &sin, &err);
	}
	return true;
}

static void se_udp_errors(struct se_qp *qp, struct se_udp_qp *uq)
{
	uq->failed = false;
	while (se_udp_error(qp, uq))
		;
}

/* True if the packet has the secret, and its GID and QPN are the sender's. */
static bool se_udp_genuine(const struct se_udp_header *header,
			   const struct sockaddr_in *from)
{
	union ibv_gid gid;

	memcpy(gid.raw, header->pkt.sgid, sizeof(gid.raw));
	return header->secret == se_cfg.secret &&
	       header->pkt.src_qpn == ntohs(from->sin_port) &&
	       se_netid_gid_addr(&gid).s_addr == from->sin_addr.s_addr;
}

static int se_udp_rx(struct se_qp *qp, int budget)
{
	struct se_udp_qp *uq = qp->wire_qp;
	struct se_udp_header header;
	struct sockaddr_in from;
	socklen_t from_len;
	ssize_t len;
	int count;

	for (count = 0; count < budget; count++) {
		from_len = sizeof(from);
		len = recvfrom(uq->fd, uq->buf, sizeof(uq->buf), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &from_len);
		if (len < 0) {
			if (errno == EAGAIN || errno == EINTR)
				break;
			uq->failed = true;
			continue;
		}
		if ((size_t)len < sizeof(header))
			continue;
		memcpy(&header, uq->buf, sizeof(header));
		if ((size_t)len != sizeof(header) + header.pkt.len)
			continue;
		if (se_udp_genuine(&header, &from))
			se_srd_rx(qp, &header.pkt, uq->buf + sizeof(header));
		else
			qp->stats.forged++;
	}
	/*
	 * Read the errors after all packets: if a peer has sent an ACK and then
	 * exited, the ACK completes the operation before the error fails it.
	 */
	if (uq->failed)
		se_udp_errors(qp, uq);
	return count;
}

static bool se_udp_rx_pending(struct se_qp *qp)
{
	return true; /* a check would cost as much as recvfrom() */
}

/* True if the socket has a packet, which may be the ACK. See softefa_io.h. */
static bool se_udp_unread(struct se_qp *qp, struct se_flow *flow,
			  uint64_t cookie)
{
	struct se_udp_qp *uq = qp->wire_qp;
	char byte;

	if (recv(uq->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
		return true;
	uq->failed |= errno != EAGAIN;
	return false;
}

static enum se_status se_udp_alive(struct se_qp *qp, struct se_flow *flow)
{
	return flow->quiet_since == SE_FLOW_REFUSED ? SE_REMOTE_BAD_DEST_QPN :
						      SE_OK;
}

static void se_udp_flow_close(struct se_qp *qp, struct se_flow *flow)
{
}

static int se_udp_event_fd(struct se_qp *qp)
{
	return ((struct se_udp_qp *)qp->wire_qp)->fd;
}

/*
 * Implements arm() and leave(). Does nothing: epoll monitors the socket without
 * further calls, and the kernel closes it when the process exits.
 */
static void se_udp_nothing(struct se_qp *qp)
{
}

const struct se_wire se_wire_udp = {
	.name = "udp",
	.rto_us = 4000,
	.window = 16,
	.open = se_udp_open,
	.close = se_udp_close,
	.leave = se_udp_nothing,
	.tx = se_udp_tx,
	.rx = se_udp_rx,
	.rx_pending = se_udp_rx_pending,
	.unread = se_udp_unread,
	.alive = se_udp_alive,
	.flow_close = se_udp_flow_close,
	.event_fd = se_udp_event_fd,
	.arm = se_udp_nothing,
};
