/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "queue/state.h"

#define TO(state) (1U << DUO_RX_##state)

const uint32_t duo_rx_next[DUO_RX_STATES] = {
	[DUO_RX_FREE] = TO(POSTED) | TO(CORE) | TO(PEEK) | TO(ARRIVING) |
			TO(OWNER) | TO(READY) | TO(MORE),
	/* receives */
	[DUO_RX_POSTED] =
		TO(LOCAL) | TO(CORE) | TO(CANCELING) | TO(RETIRED) | TO(FREE),
	[DUO_RX_LOCAL] = TO(FREE),
	[DUO_RX_CORE] = TO(RETIRED) | TO(FREE),
	[DUO_RX_CANCELING] = TO(CANCELED) | TO(CORE) | TO(RETIRED) | TO(FREE),
	[DUO_RX_CANCELED] = TO(LOCAL) | TO(POSTED) | TO(FREE),
	[DUO_RX_RETIRED] = TO(FREE),
	/* peeks */
	[DUO_RX_PEEK] = TO(CORE_CLAIMED) | TO(RETIRED) | TO(FREE),
	[DUO_RX_CORE_CLAIMED] = TO(CORE),
	/* local messages */
	[DUO_RX_ARRIVING] = TO(UNEXP) | TO(UNRESOLVED) | TO(FREE),
	[DUO_RX_UNEXP] = TO(LOCAL) | TO(UNRESOLVED) | TO(CLAIMED) | TO(FREE),
	[DUO_RX_UNRESOLVED] = TO(LOCAL) | TO(UNEXP) | TO(FREE),
	[DUO_RX_CLAIMED] = TO(LOCAL) | TO(FREE),
	/* multi-receive buffers; second entries (DUO_RX_MORE) */
	[DUO_RX_OWNER] = TO(FREE),
	[DUO_RX_READY] = TO(POSTED) | TO(CORE) | TO(FREE),
	[DUO_RX_MORE] = TO(FREE),
};
