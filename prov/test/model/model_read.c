/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Read completion queues: any number of entries, by all calls. */

#include "model.h"

#define MODEL_READ_MAX 40	/* largest number of entries of a read */
#define MODEL_READ_GUARD 0x5a

static size_t model_entry_size(void)
{
	switch (model.attr.format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

static ssize_t model_call_read(void *buf, size_t count, fi_addr_t *src)
{
	bool blocking = model_one_in(9);

	if (src)
		return blocking ?
			fi_cq_sreadfrom(model.reading, buf, count, src, NULL,
					0) :
			fi_cq_readfrom(model.reading, buf, count, src);
	return blocking ? fi_cq_sread(model.reading, buf, count, NULL, 0) :
			  fi_cq_read(model.reading, buf, count);
}

static void model_done_all(const char *buf, const fi_addr_t *src,
			   size_t count)
{
	size_t i, size = model_entry_size();
	struct model_entry entry;

	for (i = 0; i < count; i++) {
		entry = (struct model_entry) { .has_src = src };
		memcpy(&entry.cq, buf + i * size, size);
		if (src)
			entry.src = src[i];
		model_done(&entry);
	}
}

static void model_read_error(void)
{
	struct fi_cq_err_entry err = { 0 };

	ck_assert_int_eq(fi_cq_readerr(model.reading, &err, 0), 1);
	model_failed(&err);
}

static size_t model_read_count(void)
{
	if (model_one_in(8))
		return 0;
	return 1 + model_random(model_one_in(3) ? MODEL_READ_MAX : 6);
}

bool model_read_cq(struct fid_cq *cq)
{
	char buf[(MODEL_READ_MAX + 1) * sizeof(struct fi_cq_tagged_entry)];
	size_t count = model_read_count(), size = count * model_entry_size();
	fi_addr_t src[MODEL_READ_MAX + 1];
	bool with_src = model_one_in(2);
	ssize_t ret;

	model.reading = cq;
	buf[size] = MODEL_READ_GUARD;
	src[count] = MODEL_READ_GUARD;
	ret = model_call_read(count ? buf : NULL, count, with_src ? src : NULL);
	model_assert(buf[size] == MODEL_READ_GUARD &&
		     src[count] == MODEL_READ_GUARD, "written too far");
	model_assert((ret || !count) && ret <= (ssize_t) count, "read: %zd",
		     ret);
	if (ret >= 0)
		model_done_all(buf, with_src ? src : NULL, ret);
	else if (ret == -FI_EAVAIL)
		model_read_error();
	else
		model_assert(ret == -FI_EAGAIN, "read: %zd", ret);
	return ret != -FI_EAGAIN;
}

bool model_read(void)
{
	const struct model_ep *ep = &model.ep[model_random_ep()];

	return model_read_cq(model_one_in(2) ? ep->cq : ep->tx_cq);
}

static bool model_read_each(void)
{
	bool found = model_read_cq(model.ep[0].cq);

	if (model.eps > 1 && model.ep[1].cq != model.ep[0].cq)
		found |= model_read_cq(model.ep[1].cq);
	if (fx.tx_cq)
		found |= model_read_cq(fx.tx_cq);
	return found;
}

/*
 * Reads until many reads in a row return no entry. Then no receive is deferred
 * any more: ofi_duo defers a receive for at most 64 * defer_polls reads. While
 * the core is unused, ofi_duo defers a receive for 1 s, so this function
 * advances the clock by 1 s.
 */
void model_read_all(void)
{
	int i, idle = 0, idle_max = 200 + 70 * duo_params.defer_polls;

	for (i = 0; idle < idle_max; i++) {
		model_assert(i < 100000, "it never ends");
		idle = model_read_each() ? 0 : idle + 1;
		if (idle == 70)
			unit_pass(1000000);
		model.step++;
	}
	model_find_silent();
}
