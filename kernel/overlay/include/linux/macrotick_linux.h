/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick and TimerShield: the differences between the versions of Linux.
 *
 * The files of the overlay are the same for all versions. A difference that is
 * not in the hooks (kernel/hooks of the repository) is here. The order is that
 * of the subsystems: timers, scheduler.
 */
#ifndef _LINUX_MACROTICK_LINUX_H
#define _LINUX_MACROTICK_LINUX_H

#include <linux/rbtree.h>
#include <linux/timerqueue.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#include <linux/hrtimer_bases.h>
#else
#include <linux/hrtimer_defs.h>
#endif

#define MT_LINUX_7	(LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0))

/*
 * Queues of hrtimers. Since 7.2 their nodes are linked in order, and a base
 * knows its first expiry.
 */
#if MT_LINUX_7

#define ts_node			timerqueue_linked_node
#define ts_head			timerqueue_linked_head
#define ts_head_add		timerqueue_linked_add
#define ts_head_del		timerqueue_linked_del
#define ts_head_first		timerqueue_linked_first
#define ts_head_next		timerqueue_linked_next

/* Puts a node before all others. */
static inline void ts_head_put_first(struct ts_head *head, struct ts_node *node)
{
	struct rb_root_linked *root = &head->rb_root;
	struct rb_node_linked *next = root->rb_leftmost;

	node->node.prev = NULL;
	node->node.next = next;
	if (next)
		next->prev = &node->node;
	root->rb_leftmost = &node->node;
	rb_link_node(&node->node.node, next ? &next->node : NULL,
		     next ? &next->node.rb_left : &root->rb_root.rb_node);
	rb_insert_color(&node->node.node, &root->rb_root);
}

/* After a change of a queue, under the lock of its base. */
#define ts_base_changed(base)							\
do {										\
	struct ts_node *_first = ts_head_first(&(base)->active);		\
	(base)->expires_next = _first ? _first->expires : KTIME_MAX;		\
} while (0)

#define ts_function(timer)		ACCESS_PRIVATE(timer, function)
#define ts_set_queued(timer)		WRITE_ONCE((timer)->is_queued, true)
#define ts_run(cpu_base, timer, now, flags)	\
	__run_hrtimer(cpu_base, (timer)->base, timer, now, flags)

/*
 * The event device is programmed after the interrupt, perhaps by __schedule().
 * Until then it stands nowhere.
 */
#define ts_serving			deferred_rearm
#define ts_device(cpu_base)							\
	((cpu_base)->deferred_rearm ? (cpu_base)->deferred_expires_next :	\
	 (cpu_base)->expires_next)
#define ts_this_device()							\
	(__this_cpu_read(hrtimer_bases.deferred_rearm) ?			\
	 __this_cpu_read(hrtimer_bases.deferred_expires_next) :			\
	 __this_cpu_read(hrtimer_bases.expires_next))
#define ts_program_later(cpu_base)	((void)((cpu_base)->deferred_needs_update = true))
#define ts_program(cpu_base)							\
do {										\
	if ((cpu_base)->deferred_rearm)						\
		ts_program_later(cpu_base);					\
	else									\
		hrtimer_force_reprogram(cpu_base, true);			\
} while (0)

#else /* !MT_LINUX_7 */

#define ts_node			timerqueue_node
#define ts_head			timerqueue_head
#define ts_head_add		timerqueue_add
#define ts_head_del		timerqueue_del
#define ts_head_first		timerqueue_getnext
#define ts_head_next		timerqueue_iterate_next

static inline void ts_head_put_first(struct ts_head *head, struct ts_node *node)
{
	struct rb_root_cached *root = &head->rb_root;
	struct rb_node *next = rb_first_cached(root);

	rb_link_node(&node->node, next, next ? &next->rb_left : &root->rb_root.rb_node);
	rb_insert_color_cached(&node->node, root, true);
}

#define ts_base_changed(base)		do { } while (0)
#define ts_function(timer)		((timer)->function)
#define ts_set_queued(timer)		WRITE_ONCE((timer)->state, HRTIMER_STATE_ENQUEUED)
#define ts_run(cpu_base, timer, now, flags)	\
	__run_hrtimer(cpu_base, (timer)->base, timer, &(now), flags)
#define ts_serving			in_hrtirq
#define ts_device(cpu_base)		((cpu_base)->expires_next)
#define ts_this_device()		__this_cpu_read(hrtimer_bases.expires_next)
#define ts_program_later(cpu_base)	do { } while (0)
#define ts_program(cpu_base)		hrtimer_force_reprogram(cpu_base, 1)

#define hrtimer_setup(timer, fn, clock, mode)					\
do {										\
	hrtimer_init(timer, clock, mode);					\
	(timer)->function = (fn);						\
} while (0)

#endif /* !MT_LINUX_7 */

/* Callbacks of a scheduling class. */
#if MT_LINUX_7
#define MT_BALANCE_PARAMETERS	struct rq *rq, struct rq_flags *rf
#define MT_PICK_PARAMETERS	struct rq *rq, struct rq_flags *rf
#define MT_OLD_PRIO		u64

#define mt_task_rq_unlock(rq, p, rf)	__task_rq_unlock(rq, p, rf)

/* After a change of the class of a thread that is not queued, under the lock of its run queue. */
#define mt_class_changed(rq, p, before, old_prio)				\
do {										\
	(void)(old_prio);							\
	if ((before)->switched_from)						\
		(before)->switched_from(rq, p);					\
	if ((p)->sched_class->switching_to)					\
		(p)->sched_class->switching_to(rq, p);				\
	if ((p)->sched_class->switched_to)					\
		(p)->sched_class->switched_to(rq, p);				\
	timershield_prio_changed(p, task_current(rq, p));			\
} while (0)

#define MT_TASK_WORK_NOTIFY	TWA_RESUME	/* it never allocates */

#else /* !MT_LINUX_7 */

#define MT_BALANCE_PARAMETERS	struct rq *rq, struct task_struct *prev, struct rq_flags *rf
#define MT_PICK_PARAMETERS	struct rq *rq
#define MT_OLD_PRIO		int

#define mt_task_rq_unlock(rq, p, rf)	__task_rq_unlock(rq, rf)
#define mt_class_changed(rq, p, before, old_prio)				\
do {										\
	check_class_changing(rq, p, before);					\
	check_class_changed(rq, p, before, old_prio);				\
} while (0)

#define MT_TASK_WORK_NOTIFY	(TWA_RESUME | TWAF_NO_ALLOC)

#endif /* !MT_LINUX_7 */

/* The bandwidth that the servers of fair classes have on a CPU. */
#if MT_LINUX_7 && defined(CONFIG_SCHED_CLASS_EXT)
#define mt_servers_bw(rq)							\
	((rq)->fair_server.dl_bw_attached * (rq)->fair_server.dl_bw +		\
	 (rq)->ext_server.dl_bw_attached * (rq)->ext_server.dl_bw)
#elif MT_LINUX_7
#define mt_servers_bw(rq)	((rq)->fair_server.dl_bw_attached * (rq)->fair_server.dl_bw)
#else
#define mt_servers_bw(rq)	((rq)->fair_server.dl_bw)
#endif

#endif /* _LINUX_MACROTICK_LINUX_H */
