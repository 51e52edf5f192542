/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The part of the kernel that order.h uses, for user space. A queue is sorted by expiry; of
 * equal timers, the oldest comes first.
 */
#ifndef SHIM_LINUX_TIMERQUEUE_H
#define SHIM_LINUX_TIMERQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/ktime.h>
#include <linux/rbtree.h>

typedef uint8_t u8;

struct timerqueue_node {
	struct rb_node node;	/* first: a node has the address of its timer */
	ktime_t expires;
};

struct timerqueue_head {
	struct rb_root_cached rb_root;
};

static inline struct timerqueue_node *timerqueue_getnext(struct timerqueue_head *head)
{
	return (struct timerqueue_node *)head->rb_root.rb_leftmost;
}

static inline bool timerqueue_add(struct timerqueue_head *head, struct timerqueue_node *node)
{
	struct rb_node **link = &head->rb_root.rb_root.rb_node;

	while (*link && ((struct timerqueue_node *)*link)->expires > node->expires)
		link = &(*link)->rb_left;
	node->node.rb_left = *link;
	*link = &node->node;
	if (!node->node.rb_left)
		head->rb_root.rb_leftmost = &node->node;
	return !node->node.rb_left;
}

static inline bool timerqueue_del(struct timerqueue_head *head, struct timerqueue_node *node)
{
	struct rb_node **link = &head->rb_root.rb_root.rb_node;
	struct rb_node *parent = NULL;

	while (*link != &node->node) {
		parent = *link;
		link = &parent->rb_left;
	}
	*link = node->node.rb_left;
	if (!*link)
		head->rb_root.rb_leftmost = parent;
	return head->rb_root.rb_root.rb_node;
}

#endif
