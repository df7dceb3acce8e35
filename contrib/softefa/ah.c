/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Address handles. All handles to a GID have the same number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

static int se_ah_search(struct se_dev *dev, const union ibv_gid *gid)
{
	uint32_t i;

	for (i = 0; i < se_cfg.max_ah; i++) {
		if (dev->ah[i].refs && se_gid_equal(&dev->ah[i].gid, gid))
			return (int)i;
	}
	return -1;
}

uint16_t se_ah_find(struct se_dev *dev, const union ibv_gid *gid)
{
	int ahn;

	pthread_mutex_lock(&dev->lock);
	ahn = se_ah_search(dev, gid);
	pthread_mutex_unlock(&dev->lock);
	return ahn < 0 ? SE_AH_UNKNOWN : (uint16_t)ahn;
}

/*
 * Returns the GID's address handle number, with a new reference; -1: no handle
 * is left. The caller holds dev->lock.
 */
static int se_ah_take(struct se_dev *dev, const union ibv_gid *gid)
{
	int ahn = se_ah_search(dev, gid);

	if (dev->ah_count == se_cfg.max_ah)
		return -1;
	if (ahn < 0) {
		for (ahn = 0; dev->ah[ahn].refs; ahn++)
			;
		dev->ah[ahn].gid = *gid;
		dev->ah_gen++;
	}
	dev->ah[ahn].refs++;
	dev->ah_count++;
	return ahn;
}

SE_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
				       struct ibv_ah_attr *attr)
{
	struct se_dev *dev = se_dev_of(pd->context);
	struct se_ah *ah;
	int ahn;

	if (attr->port_num != 1) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	pthread_mutex_lock(&dev->lock);
	ahn = se_ah_take(dev, &attr->grh.dgid);
	pthread_mutex_unlock(&dev->lock);
	if (ahn < 0) {
		free(ah);
		errno = ENOMEM;
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = (uint32_t)ahn;
	ah->gid = attr->grh.dgid;
	ah->ahn = (uint16_t)ahn;
	return &ah->ibv;
}

SE_EXPORT int ibv_destroy_ah(struct ibv_ah *ah_fid)
{
	struct se_dev *dev = se_dev_of(ah_fid->context);
	struct se_ah *ah = (struct se_ah *)ah_fid;

	pthread_mutex_lock(&dev->lock);
	if (!--dev->ah[ah->ahn].refs)
		dev->ah_gen++;
	dev->ah_count--;
	pthread_mutex_unlock(&dev->lock);
	free(ah);
	return 0;
}

SE_EXPORT int efadv_query_ah(struct ibv_ah *ah_fid, struct efadv_ah_attr *attr,
			     uint32_t inlen)
{
	struct efadv_ah_attr full = { .ahn = ((struct se_ah *)ah_fid)->ahn };

	se_copy_out(attr, inlen, &full, sizeof(full));
	return 0;
}
