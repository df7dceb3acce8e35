/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Addresses that the application removes from the AV of the provider near. */

#include "logged.h"
#include "side.h"

UNIT_CASE("removed", recv_setup, recv_teardown);

/*
 * An endpoint reaches at most DUO_LOCAL_MAX local peers at a time. Addresses
 * that were removed do not count, even if the endpoint has exchanged no message
 * with their peers.
 */
UNIT_TEST(removed_addresses_do_not_count)
{
	struct near_addr name;
	size_t len = sizeof(name);
	enum fi_duo_reason reason;
	enum fi_duo_path path;
	fi_addr_t addr;
	int i;

	ck_assert(!fi_getname(&ep[1]->fid, &name, &len));
	for (i = 0; i <= DUO_LOCAL_MAX; i++) {
		name.nonce++;
		ck_assert_int_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL),
				 1);
		ck_assert(!duo_ops.path(ep[0], addr, &path, &reason));
		ck_assert_msg(reason == FI_DUO_OK, "address %d: %s", i,
			      duo_ops.reason_str(reason));
		ck_assert(!fi_av_remove(av, &addr, 1, 0));
	}
}

/*
 * Each of the two endpoints of the AV logs a warning about the first address
 * beyond the limit of peers, but not about further ones.
 */
UNIT_TEST(limit_of_peers_is_logged_once)
{
	struct near_addr name;
	size_t len = sizeof(name);
	fi_addr_t addr;
	int i;

	ck_assert(!fi_getname(&ep[1]->fid, &name, &len));
	for (i = 0; i < DUO_LOCAL_MAX + 3; i++) {
		name.nonce++;
		ck_assert_int_eq(fi_av_insert(av, &name, 1, &addr, 0, NULL),
				 1);
	}
	ck_assert_int_eq(logged_lines, 2);
	ck_assert_ptr_nonnull(strstr(logged, "are not reachable"));
}

/*
 * The application removes a peer's address. The peer must stay connected, so
 * that the messages that the peer sends before and after the removal arrive in
 * order. If _i is 1, the application inserts the address again before the peer
 * sends its second message.
 */
UNIT_LOOP(messages_of_removed_peer_arrive_in_order, 0, 2)
{
	fi_addr_t to = recv_insert(ep[0]);
	char got[4] = "";
	int i;

	ck_assert(!fi_tinject(ep[0], "x", 1, peer, 1));
	ck_assert(!fi_tinject(ep[1], "1", 1, to, 1));
	ck_assert_int_eq(fi_cq_read(cq[0], NULL, 0), -FI_EAGAIN);
	ck_assert(!fi_av_remove(av, &peer, 1, 0));
	if (_i)
		ck_assert_uint_eq(recv_insert(ep[1]), peer);
	ck_assert(!fi_tinject(ep[1], "2", 1, to, 1));
	for (i = 0; i < 2; i++) {
		ck_assert(!fi_trecv(ep[0], got + i, 1, NULL, FI_ADDR_UNSPEC, 1,
				    0, got));
		ck_assert_int_eq(recv_end(got), 0);
	}
	ck_assert_str_eq(got, "12");
}
