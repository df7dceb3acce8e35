/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* queue/rx.h: changes of a receive's state, as in docs/matching.md */

#include <signal.h>
#include <stdio.h>

#include "queue/rx.h"
#include "unit.h"

#define DOCUMENT "docs/matching.md"

static const char *const names[DUO_RX_STATES] = {
	[DUO_RX_FREE] = "FREE",
	[DUO_RX_POSTED] = "POSTED",
	[DUO_RX_LOCAL] = "LOCAL",
	[DUO_RX_CORE] = "CORE",
	[DUO_RX_CANCELING] = "CANCELING",
	[DUO_RX_CANCELED] = "CANCELED",
	[DUO_RX_PEEK] = "PEEK",
	[DUO_RX_ARRIVING] = "ARRIVING",
	[DUO_RX_UNEXP] = "UNEXP",
	[DUO_RX_UNRESOLVED] = "UNRESOLVED",
	[DUO_RX_CLAIMED] = "CLAIMED",
	[DUO_RX_CORE_CLAIMED] = "CORE_CLAIMED",
	[DUO_RX_RETIRED] = "RETIRED",
	[DUO_RX_OWNER] = "OWNER",
	[DUO_RX_READY] = "READY",
	[DUO_RX_MORE] = "MORE",
};

static void read_document(char *text, size_t size)
{
	const char *srcdir = getenv("srcdir");
	char path[512];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/" DOCUMENT, srcdir ? srcdir : "..");
	file = fopen(path, "r");
	ck_assert_msg(file, "%s: start this in the build tree, or set srcdir",
		      path);
	len = fread(text, 1, size - 1, file);
	ck_assert_uint_lt(len, size - 1);
	text[len] = '\0';
	fclose(file);
}

UNIT_CASE("state", NULL, NULL);

UNIT_TEST(diagram_matches_table)
{
	static char text[1 << 18];
	char line[64];
	int from, to;

	read_document(text, sizeof(text));
	for (from = 0; from < DUO_RX_STATES; from++) {
		for (to = 0; to < DUO_RX_STATES; to++) {
			snprintf(line, sizeof(line), "    %s --> %s\n",
				 names[from], names[to]);
			ck_assert_msg(duo_rx_may(from, to) ==
				      (strstr(text, line) != NULL),
				      DOCUMENT " %s:%s",
				      duo_rx_may(from, to) ? "lacks" :
							     "must not have",
				      line);
		}
	}
}

#ifndef NDEBUG
static const struct {
	enum duo_rx_state from, to;
} illegal[] = {
	{DUO_RX_FREE, DUO_RX_FREE},    /* released twice */
	{DUO_RX_LOCAL, DUO_RX_POSTED}, /* two owners: shm and the core */
	{DUO_RX_CORE, DUO_RX_LOCAL},
	{DUO_RX_RETIRED, DUO_RX_POSTED},
	/* a claimed message is not unexpected any more */
	{DUO_RX_CLAIMED, DUO_RX_UNEXP},
};

UNIT_SIGNAL(illegal_change_aborts, SIGABRT, 0, ARRAY_SIZE(illegal))
{
	struct duo_rx rx = { .state = illegal[_i].from };

	duo_rx_become(&rx, illegal[_i].to);
}
#endif
