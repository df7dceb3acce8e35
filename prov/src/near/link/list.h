/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Doubly linked list of structs that contain a struct near_link. */
#ifndef NEAR_LINK_LIST_H
#define NEAR_LINK_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct near_link {
	struct near_link *next;
	struct near_link *prev;
};

#define near_container(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* Loops over the structs in a list. item: variable for the current struct. */
#define near_list_each(item, head, member)				\
	for (item = near_container((head)->next, typeof(*item), member); \
	     &item->member != (head);					\
	     item = near_container(item->member.next, typeof(*item), member))

/*
 * Loops over the structs in a list; the loop may remove and free `item`.
 * next_item: a second variable, for the struct after `item`.
 */
#define near_list_each_safe(item, next_item, head, member)		\
	for (item = near_container((head)->next, typeof(*item), member); \
	     next_item = near_container(item->member.next, typeof(*item), \
					member),			\
	     &item->member != (head);					\
	     item = next_item)

static inline void near_list_init(struct near_link *head)
{
	head->next = head->prev = head;
}

static inline bool near_list_empty(const struct near_link *head)
{
	return head->next == head;
}

static inline void near_list_append(struct near_link *head,
				    struct near_link *link)
{
	link->next = head;
	link->prev = head->prev;
	head->prev->next = link;
	head->prev = link;
}

static inline void near_list_remove(struct near_link *link)
{
	link->next->prev = link->prev;
	link->prev->next = link->next;
}

#endif /* NEAR_LINK_LIST_H */
