/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A tree with nodes that have no right children. From the root, which is the last node, it
 * leads to the left, down to the first node. The callers of rb_link_node() put a node before the
 * first one, which keeps this form. The tree is never balanced.
 */
#ifndef SHIM_LINUX_RBTREE_H
#define SHIM_LINUX_RBTREE_H

#include <stdbool.h>
#include <stddef.h>

struct rb_node {
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

#define rb_first_cached(root) ((root)->rb_leftmost)

static inline void rb_link_node(struct rb_node *node, struct rb_node *parent, struct rb_node **link)
{
	(void)parent;
	node->rb_left = NULL;
	*link = node;
}

static inline void rb_insert_color_cached(struct rb_node *node, struct rb_root_cached *root,
					  bool leftmost)
{
	if (leftmost)
		root->rb_leftmost = node;
}

#endif
