/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What order.h uses of the kernel, for user space: a queue is a list sorted by expiry, of equals the oldest first.
 */
#ifndef SHIM_LINUX_TIMERQUEUE_H
#define SHIM_LINUX_TIMERQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/ktime.h>

typedef uint8_t u8;

struct timerqueue_node {
	struct timerqueue_node *next;
	ktime_t expires;
};

struct timerqueue_head {
	struct timerqueue_node *first;
};

static inline void timerqueue_init_head(struct timerqueue_head *head)
{
	head->first = NULL;
}

static inline struct timerqueue_node *timerqueue_getnext(struct timerqueue_head *head)
{
	return head->first;
}

static inline bool timerqueue_add(struct timerqueue_head *head, struct timerqueue_node *node)
{
	struct timerqueue_node **at = &head->first;

	while (*at && (*at)->expires <= node->expires)
		at = &(*at)->next;
	node->next = *at;
	*at = node;
	return head->first == node;
}

static inline bool timerqueue_del(struct timerqueue_head *head, struct timerqueue_node *node)
{
	struct timerqueue_node **at = &head->first;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	return head->first != NULL;
}

#endif
