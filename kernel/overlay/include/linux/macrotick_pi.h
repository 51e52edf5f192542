/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: what a thread that waits for a lock lends to its owner, and what
 * its place among the waiters is.
 */
#ifndef _LINUX_MACROTICK_PI_H
#define _LINUX_MACROTICK_PI_H

#include <linux/sched.h>

#ifdef CONFIG_MACROTICK
int mt_own_prio(struct task_struct *p);

/* A pool's thread lends what it has by itself or is lent, not what its windows give it. */
static inline int macrotick_lent_prio(struct task_struct *p)
{
	return unlikely(p->macrotick.pooled) ? min_t(int, mt_own_prio(p), READ_ONCE(p->macrotick.lent)) : p->prio;
}
#else
static inline int macrotick_lent_prio(struct task_struct *p) { return p->prio; }
#endif

#endif /* _LINUX_MACROTICK_PI_H */
