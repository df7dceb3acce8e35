/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads and writes of mapped device memory at the initiator, with any entry,
 * export and generation in the target's table. Asserted:
 * - each copy is between the operation's buffers and bytes of the mapping;
 * - each operation ends once;
 * - a mapping in use stays; each is dropped once, into near_table.unmapped;
 * - each file descriptor of an allocation has one owner, or is closed once.
 *
 * Lines for ./run, which explains their keys:
 * C: near/rma/mapping.c near_mapping_get
 * C: near/rma/mapping.c near_mapped_queue near_mapping_open near_mapping_find
 * C: near/rma/mapping.c near_mapping_at near_mapping_drop
 * C: near/rma/mapping.c near_mapping_valid near_mapping_expired
 * C: near/rma/mapping.c near_mapping_map near_mapping_request
 * C: near/rma/mapping.c near_mapping_give_up near_mapped_close
 * C: near/rma/mapping.c near_mapped_search near_table_unmapped
 * C: near/rma/mapping.c near_mappings_evict near_mapped_shared
 * C: near/rma/mapping.c near_mapping_waits
 * C: near/rma/mapped.c near_mapped_issue near_mapped_start
 * C: near/rma/mapped.c near_mapped_begin near_mapped_to_stage near_mapped_step
 * C: near/rma/mapped.h near_mapped_handle
 * LONG: five cases
 * CBMC: --unwind 3 -DRINGS_CLASS=0 --object-bits 10
 * CBMC: --unwindset near_mappings_evict.0:2,near_mappings_evict.1:2
 * CBMC: --unwindset near_mapped_search.0:2,near_table_unmapped.0:2
 * CASES: 5
 * EDIT near/near.h: s/NEAR_IOV_MAX 4/NEAR_IOV_MAX 2/
 * EDIT near/rma/mapped.h: s/NEAR_MAPPINGS 64/NEAR_MAPPINGS 1/
 * EDIT near/rma/mapped.h: s/NEAR_UNMAPPED 64/NEAR_UNMAPPED 1/
 * EDIT near/rma/mapped.h: s/NEAR_DROPPED 8/NEAR_DROPPED 1/
 * EDIT near/rma/mapped.h: s/NEAR_MAPPED_OPS 16/NEAR_MAPPED_OPS 2/
 * EDIT near/rma/mapped.c: s/near_rma_end\(port, /ended(/
 * EDIT near/rma/mapping.c: s/near_mapped_search\(mapped\);/searched();/
 * EDIT near/rma/mapping.c: s/near_mappings_evict\(mapped->table\);/searched();/
 * EDIT near/rma/mapping.c: s/calloc\(1, sizeof\(\*mapping\)\)/mapping_new()/
 * EDIT near/rma/mapping.c: s/free\(mapping\)/mapping_free(mapping)/g
 * MUTANT offset-unchecked near/rma/mapping.c: \
 *   s/offset <= mapping->map.len && //
 * MUTANT length-unchecked near/rma/mapping.c: \
 *   s/ && len <= mapping->map.len - offset//
 * MUTANT looked-up-before near/rma/mapped.c: \
 *   s/memory = near_mapping_at\(mapping, address, op->args.len\)/memory = \
 *   mapping->map.at + (address - mapping->base)/
 * MUTANT buffer-unlimited near/rma/mapped.c: s/n = n < left \? n : left;//
 * MUTANT copied-without-device near/rma/mapped.c: s/!handle \|\| //
 * MUTANT used-is-dropped near/rma/mapping.c: \
 *   s/else if \(!mapping->ops && /else if (/
 * MUTANT issued-too-many near/rma/mapped.c: s/pending == NEAR_MAPPED_OPS \|\|//
 * MUTANT ended-early near/rma/mapped.c: \
 *   s/if \(!near_copies_ended\([^;]*\)\)\n\t\t\treturn;/\
 *   near_copies_ended(NULL, op->pending, \&op->err);/
 * MUTANT ended-twice near/rma/mapped.c: \
 *   s/\t\tmapped->ended\+\+;\n\t\tat->due--;\n\t\tended/\t\tended/
 * MUTANT mapped-too-many near/rma/mapping.c: \
 *   s/if \(mapped->count == NEAR_MAPPINGS\)\n\t\treturn NULL;//
 * MUTANT unmapped-too-many near/rma/mapping.c: \
 *   s/mapped->table->unmapped_count < NEAR_UNMAPPED\)/1)/
 * MUTANT failed-is-mapped near/rma/mapping.c: \
 *   s/if \(found->failed\)\n\t\treturn NEAR_DEVICE_FAILED;//
 * MUTANT freed-in-list near/rma/mapping.c: \
 *   s/near_list_remove\(&mapping->link\);\n\tmapped->count--;/\
 *   mapped->count--;/
 * MUTANT used-is-evicted near/rma/mapping.c: \
 *   s/if \(mapping->map.mapping && !mapping->ops &&/if \
 *   (mapping->map.mapping \&\&/
 * MUTANT descriptor-is-lost near/rma/mapping.c: \
 *   s/if \(fd >= 0\)\n\t\tclose\(fd\);\n\}/}/
 * MUTANT descriptor-closed-twice near/rma/mapping.c: \
 *   s/close\(mapping->fd\);\n\tmapping->fd = -1;/close(mapping->fd);/
 */

#include <unistd.h>

#include "rings.h"

#include "near/rma/mapped.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

static struct near_port port;
static struct near_peer peer;
static struct near_rma rma;
static struct near_rma_peer at;
static struct near_table table;
static struct near_table_view view;
static struct near_table_head head;
static struct near_staging staging;
static struct near_mapped *mapped = &staging.mapped;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_rma_op op_new, op_old;
static bool old_pending;	/* op_old's copies have begun and not ended */
static uint8_t *area;		/* the mapped memory */
static size_t area_len;
static int started;
static int descriptors;		/* number of open descriptors */

static struct near_mapping *mapping_new(void)
{
	struct near_mapping *mapping = any(bool) ? NULL :
				       malloc(sizeof(*mapping));

	if (mapping)
		*mapping = (struct near_mapping){ 0 };
	return mapping;
}

static void mapping_free(struct near_mapping *mapping)
{
	check(!mapping->ops);
	free(mapping);
}

/*
 * In place of the calls of near_mapped_search() and near_mappings_evict() in
 * mapping.c. drops() and replies() call these two functions themselves.
 */
static void searched(void)
{
}

static void ended(struct near_rma_op *op, int err)
{
	check(op == &op_old && !old_pending && op->begun && err >= 0);
	op->begun = false;
	op->mapping->ops--;
	at.unanswered--;
}

/* The device */

static const char queues[2];

static const void *device_queue(void *device)
{
	return any(bool) ? NULL : &queues[any(bool)];
}

static void *device_host(void *ctx, const void *memory, size_t len)
{
	return any(bool) ? NULL : area;
}

static int device_map(void *device, const struct near_export *export, int fd,
		      struct near_map *map)
{
	check(!export->needs_fd || fd >= 0);
	if (any(bool))
		return any(bool) ? -ENOMEM : -EIO;
	*map = (struct near_map){ area, area, area_len };
	return 0;
}

static int device_start(void *device, void *to, const void *from, size_t len,
			void **copy)
{
	bool read = op_new.args.verb == NEAR_READ;
	const void *local = read ? to : from, *other = read ? from : to;

	check(device && len && __CPROVER_same_object(other, area));
	check(readable(other, len) && readable(local, len));
	check(local == op_new.local[0].iov_base ||
	      local == op_new.local[1].iov_base);
	if (any(bool))
		return -EIO;
	*copy = area;
	started++;
	return 0;
}

static const struct near_device device = {
	.start = device_start, .queue = device_queue, .map = device_map,
	.host = device_host,
};
static const struct near_rma_sink sink = { .device = &device };

#include "near/rma/mapping.c"
#include "near/rma/mapped.c"

int close(int fd)
{
	check(fd >= 0 && descriptors > 0);
	descriptors--;
	return 0;
}

int near_fdx_gpu_request(struct near_port *of, struct near_peer *whom,
			 uint64_t key, uint64_t id)
{
	return any(bool) ? 0 : any(bool) ? -EAGAIN : -EHOSTUNREACH;
}

const struct near_region_entry *
near_table_find_slow(const struct near_table *of, uint64_t key)
{
	return NULL;
}

/* In place of functions of other files of rma/, and of link/ */

/* Returns false for two tests at most; then the copies have ended. */
bool near_copies_ended(const struct near_device *of, void **copy, int *err)
{
	static int tests;

	check(copy == op_old.pending && old_pending);
	if (any(bool) && tests++ < 2)
		return false;
	old_pending = false;
	*err = any(bool) ? 0 : EIO;
	return true;
}

struct near_staging *near_staging(struct near_port *of,
				  struct near_rma_peer *to)
{
	return any(bool) ? NULL : &staging;
}

void near_stage_begin(struct near_rma_op *op)
{
	check(!op->begun);
	op->begun = true;
	at.unanswered++;
}

int near_stage_open(struct near_port *of, struct near_rma_peer *to)
{
	return any(bool) ? 0 : -ENOMEM;
}

int near_rma_look_up(struct near_rma_peer *to, const struct near_rma_args *args,
		     struct near_region_entry *entry, uint64_t *memory)
{
	*entry = any(struct near_region_entry);
	*memory = any(uint64_t);
	return any(bool) ? 0 : any(bool) ? -EAGAIN : -EACCES;
}

int near_table_view_find(struct near_table_view *of, uint64_t key,
			 struct near_region_entry *entry)
{
	*entry = any(struct near_region_entry);
	return any(bool) ? 0 : any(bool) ? -EAGAIN : -EKEYREJECTED;
}

int near_table_view_export(struct near_table_view *of,
			   const struct near_region_entry *entry,
			   struct near_export *export)
{
	*export = any(struct near_export);
	return export->id == entry->export_id ? 0 : -EAGAIN;
}

bool near_rma_behind(struct near_rma_peer *to, const struct near_rma_args *args)
{
	return any(bool);
}

bool near_rma_notifies(const struct near_rma_op *op)
{
	return any(bool);
}

void near_rma_notify(struct near_port *of, const struct near_rma_op *op,
		     struct near_slot *slot)
{
	check(writable(slot, sizeof(*slot)) && op == &op_old && op->begun);
}

struct near_slot *near_control_slot_other(struct near_port *of,
					  struct near_peer *to)
{
	return near_tx_slot_past(&to->tx);
}

void near_log(const struct near_port *of, int level, const char *format, ...)
{
}

uint64_t duo_now_ms(void)
{
	return any(uint64_t);
}

/* Makes a list entry for an allocation, which is mapped or not. */
static struct near_mapping *mapping_any(struct near_link *list)
{
	struct near_mapping *mapping = malloc(sizeof(*mapping));

	*mapping = any(struct near_mapping);
	mapping->ops = 0;
	mapping->queue = &queues[any(bool)];
	mapping->fd = -1;
	mapping->map = (struct near_map){ area, area, area_len };
	if (any(bool)) {
		mapping->map = (struct near_map){ NULL };
		mapping->fd = any(bool) ? 3 : -1;
		descriptors += mapping->fd >= 0;
	}
	near_list_append(list, &mapping->link);
	return mapping;
}

static void mapped_any(void)
{
	area_len = any(size_t);
	assume(area_len < 1u << 20);
	area = malloc(area_len);
	*mapped = any(struct near_mapped);
	mapped->at = &at;
	mapped->table = &table;
	near_list_init(&mapped->mappings);
	near_list_append(&table.mapped, &mapped->link);
	mapped->ended = any(uint32_t);
	mapped->begun = mapped->ended;
	for (mapped->count = 0; mapped->count < NEAR_MAPPINGS && any(bool);
	     mapped->count++)
		mapping_any(&mapped->mappings);
	at.staging = &staging;
}

/* Makes an operation whose two buffers have at least its length. */
static void op_any(struct near_rma_op *op)
{
	static void *handles[2] = { handles };
	size_t first = any(size_t), second = any(size_t);

	assume(first < 1u << 19 && second < 1u << 19);
	handles[1] = any(bool) ? NULL : handles;
	op->to = &at;
	op->args = any(struct near_rma_args);
	op->args.verb = any(bool) ? NEAR_READ : NEAR_WRITE;
	op->args.len = any(size_t);
	assume(op->args.len <= first + second);
	op->args.local = (struct near_rma_bufs){
		op->local, 2, any(bool) ? NULL : handles,
	};
	op->local[0] = (struct iovec){ malloc(first), first };
	op->local[1] = (struct iovec){ malloc(second), second };
}

/* Makes an operation whose copies are pending. */
static void begun(void)
{
	op_old.to = &at;
	op_old.begun = old_pending = true;
	op_old.mapping = mapping_any(&mapped->mappings);
	op_old.mapping->ops = 1;
	mapped->count++;
	mapped->op[mapped->begun++ % NEAR_MAPPED_OPS] = &op_old;
	mapped->queue = op_old.mapping->queue;
	at.unanswered = at.due = 1;
}

static void check_mapped(void)
{
	struct near_mapping *mapping;
	struct near_link *link;
	uint32_t n = 0;
	int owned = 0;

	for (link = mapped->mappings.next; link != &mapped->mappings;
	     link = link->next) {
		mapping = near_container(link, struct near_mapping, link);
		check(readable(mapping, sizeof(*mapping)));
		owned += mapping->fd >= 0;
		n++;
	}
	check(n == mapped->count && owned == descriptors);
	n = 0;
	for (link = table.unmapped.next; link != &table.unmapped;
	     link = link->next)
		n++;
	check(n == table.unmapped_count);
}

static void gets(void)
{
	struct near_region_entry entry = any(struct near_region_entry);
	struct near_mapping *mapping = NULL;
	uint64_t memory = any(uint64_t);
	size_t len = op_new.args.len;

	near_mapping_get(&port, &at, &op_new.args, &entry, memory, &mapping);
	check(mapped->count <= NEAR_MAPPINGS);
	if (mapping) {
		check(!mapping->failed && mapping->id == entry.export_id);
		check(len <= area_len &&
		      memory - mapping->base <= area_len - len);
	}
	check_mapped();
}

static void issues(void)
{
	uint32_t pending;

	if (any(bool))
		begun();
	if (any(bool))
		mapped->begun++, mapped->op[(mapped->begun - 1) %
					    NEAR_MAPPED_OPS] = &op_old;
	pending = mapped->begun - mapped->ended;
	at.unanswered = any(bool) ? pending : any(uint32_t);
	op_new.mapping = mapping_any(&mapped->mappings);
	op_new.mapping->ops = 1;
	if (near_mapped_issue(&port, &op_new)) {
		check(!started && !op_new.begun);
		check(mapped->begun - mapped->ended == pending);
		return;
	}
	check(op_new.begun && mapped->begun - mapped->ended == pending + 1);
	check(pending < NEAR_MAPPED_OPS);
	check(mapped->op[(mapped->begun - 1) % NEAR_MAPPED_OPS] == &op_new);
}

/* Handles the reply to a request for a descriptor, or an unrequested reply. */
static void replies(void)
{
	struct near_mapping *used = NULL;
	int fd = any(bool) ? 4 : -1;

	descriptors += fd >= 0;
	if (!mapped->count) {
		used = mapping_any(&mapped->mappings);
		used->ops = mapped->count = 1;
	}
	near_mapped_shared(&port, &peer, any(uint64_t), fd);
	check_mapped();
	near_mappings_evict(&table);
	check(!used || mapped->count == 1);
	check_mapped();
}

/* Drops mappings of regions that were removed. */
static void drops(void)
{
	if (!mapped->count)
		begun();
	if (any(bool)) {
		assume(mapping_any(&table.unmapped)->fd < 0);
		table.unmapped_count++;
	}
	near_mapped_search(mapped);
	check(table.unmapped_count <= NEAR_UNMAPPED);
	near_table_unmapped(&table);
	check(!old_pending || readable(op_old.mapping, 1));
	check_mapped();
}

/* Ends operations. If all have ended, drops all mappings of the peer. */
static void ends(void)
{
	if (!mapped->count)
		begun();
	near_mapped_step(&port, &at);
	check(at.due == (mapped->begun != mapped->ended));
	if (op_old.begun)
		return;
	near_mapped_close(mapped, &device);
	check(near_list_empty(&table.mapped) && !descriptors);
}

int main(void)
{
	ring_made();
	tx_any(&peer.tx);
	near_list_init(&table.mapped);
	near_list_init(&table.unmapped);
	view.head = &head;
	port.rma = &rma;
	rma.sink = &sink;
	rma.table = &table;
	peer.rma = &at;
	at.peer = &peer;
	at.view = &view;
	mapped_any();
	switch (CASE) {
	case 0:
		op_any(&op_new);
		gets();
		break;
	case 1:
		op_any(&op_new);
		issues();
		break;
	case 2:
		drops();
		break;
	case 3:
		ends();
		break;
	default:
		replies();
	}
	return 0;
}
