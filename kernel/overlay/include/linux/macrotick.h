/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: what the rest of the kernel sees of time-triggered scheduling.
 *
 * With CONFIG_MACROTICK off every hook is an empty inline function.
 */
#ifndef _LINUX_MACROTICK_H
#define _LINUX_MACROTICK_H

#include <linux/errno.h>
#include <linux/rbtree_types.h>
#include <linux/types.h>
#include <uapi/linux/macrotick.h>

struct affinity_context;
struct macrotick_served;
struct mt_group;
struct mt_server;
struct task_struct;

/*
 * A thread's job, seen from the class:
 *
 *              ACTIVATE                      wait, yield
 *   WAITING ------------->  READY (job n)  --------------> WAITING
 *                            |       ^   |
 *                            +-------+   | wait, with an activation pending
 *                            ACTIVATE:   +--------------> READY (job n+1)
 *                            pending
 *
 * A thread that never waited is READY without a job: windows serve it, but
 * it takes no part in the accounting of jobs.
 */
enum macrotick_thread_state {
	MACROTICK_READY = 0,
	MACROTICK_WAITING,
};

/*
 * What serves a thread under SCHED_DS, or one that such a thread waits for
 * (sched/macrotick/ds_inherit.c). Protected by the lock of its run queue.
 */
struct macrotick_ds {
	struct mt_group		*group;		/* with a reference; NULL: it is not in the class */
	struct mt_group		*assigned;	/* of a kernel thread, with a reference: see ds_kthreads.c */
	struct mt_group		*wanted;	/* what it is to be, within one change; no reference */
	struct mt_server	*server;	/* while queued */
	struct list_head	ready;		/* in the server's queue of its priority, or urgent */
	struct list_head	contends;	/* in the server's contenders */
	struct list_head	watched;	/* see mt_ds_watch_lock */
	struct list_head	waits;		/* in its CPU's waiting */
	u64			waits_since;	/* see ds_relief.c; zero: it has not waited */
	u64			ran_then;
	unsigned long		slept_then;
	struct callback_head	end_relief;
	u32			led;		/* ns by which its sleep ends early; written by itself */
	u8			prio;		/* while ready: the queue */
	u8			rank;		/* while urgent: its place among the groups' priorities */
	bool			linked;		/* in a queue of the server */
	bool			urgent;		/* served on credit: it was offered a lock */
	bool			contending;
	bool			is_watched;
	bool			stray;		/* watched, and must be decided anew */
	bool			relieved;	/* outside its group until it returns to user mode */
	bool			at_door;	/* of user mode: it holds nothing */
};

/*
 * Embedded in task_struct. Protected by the lock of the thread's run queue,
 * membership and job of a roaming entity's by the entity's own lock, too.
 */
struct macrotick_task {
	/* Not of one membership */
	struct macrotick_ds	ds;

	/* A look at the thread's group is due (pool.c) */
	struct callback_head	look;

	/* Has, or waits for, mt_control: it does not enter the class meanwhile (run.c) */
	bool			controls;
	bool			poked;		/* the last one: see unlink_member() */

	struct macrotick_served	*entity;	/* NULL: not bound */
	struct macrotick_served	*inherits;	/* of a child that is not yet bound */
	struct list_head	member;		/* in entity->threads */
	struct list_head	ready;		/* in entity->ready, or urgent or parked */
	struct list_head	contends;	/* in entity->contenders, or those of its CPU that are astray */
	struct rb_node		turn;		/* in entity->turns */
	u64			turn_key;	/* its place there, among those of its rank */
	u64			job;
	u64			nominal;
	u64			pending_job;
	u64			pending_nominal;
	u64			joined;		/* when it was bound; jobs before are not its own */
	u64			lost;
	u64			held;		/* not yet accounted, written by the thread itself */
	enum macrotick_thread_state state;
	bool			queued;	/* enqueued in the class, on its entity's CPU */
	bool			astray;		/* enqueued in the class, on another one */
	bool			linked;	/* in entity->ready */
	bool			ordered;	/* in entity->turns */
	bool			contending;	/* in entity->contenders */
	bool			urgent;		/* served outside windows */
	bool			parked;		/* urgent, but the lock is not free */
	bool			doomed;	/* a fatal signal is on its way */
	bool			periodic;	/* has waited at least once */
	bool			has_job;	/* released and not complete */
	bool			has_pending;
	bool			began;		/* its job has had the processor */
	bool			hold;		/* its job is held until the nominal instant */
	bool			late;		/* the lead was too short, not yet accounted */
	bool			missed;		/* its job is a miss */
	bool			to_tell;	/* it must be told so */
	bool			boosted;	/* has a donor */
	bool			in_wait;	/* in the device's wait call */
	bool			unbinding;	/* leaves the class and the entity: no way back */
	bool			at_rest;	/* WAITING, and has nothing to do before its job */
	bool			pooled;		/* the entity is a pool */
	bool			grouped;	/* came with its control group */
	bool			changed;	/* in a pool: it has another policy, and is to be decided anew */
	u8			own_policy;	/* of a pooled thread, outside the class */
	u8			own_priority;	/* SCHED_FIFO and SCHED_RR; else zero */
	u8			lent;		/* in a pool: the priority of who waits for a lock of it, or MAX_PRIO */
	u8			turn_rank;	/* while ordered */
	u64			used;		/* in a pool: processor time, weighted */
};

static inline bool macrotick_policy(int policy)
{
	return IS_ENABLED(CONFIG_MACROTICK) && policy == SCHED_TT;
}

static inline bool macrotick_ds_policy(int policy)
{
	return IS_ENABLED(CONFIG_MACROTICK) && policy == SCHED_DS;
}

/* Hooks of sched_get_priority_max(2) and sched_get_priority_min(2), for policies they do not know. */
static inline int macrotick_priority(int policy, int limit)
{
	if (macrotick_policy(policy))
		return 0;
	return macrotick_ds_policy(policy) ? limit : -EINVAL;
}

#ifdef CONFIG_MACROTICK
void macrotick_exit_task(struct task_struct *p);
void __macrotick_fatal_signal(struct task_struct *p);
void mt_hold(void);
bool macrotick_pins(struct task_struct *p, struct affinity_context *ctx);
bool macrotick_bound(struct task_struct *p);

/* Hook of sched_yield(2), behind the switch; not of yield(), whose callers may hold locks. */
#define macrotick_yielded()						\
do {									\
	if (unlikely(current->policy == SCHED_TT))			\
		mt_hold();						\
} while (0)

#define macrotick_fatal_signal(p, state)				\
do {									\
	if (unlikely(((state) & TASK_WAKEKILL) && (p)->policy == SCHED_TT)) \
		__macrotick_fatal_signal(p);				\
} while (0)
#else
static inline void macrotick_exit_task(struct task_struct *p) { }
static inline bool macrotick_pins(struct task_struct *p, struct affinity_context *ctx) { return false; }
static inline bool macrotick_bound(struct task_struct *p) { return false; }
#define macrotick_fatal_signal(p, state) do { } while (0)
#define macrotick_yielded() do { } while (0)
#endif

#endif /* _LINUX_MACROTICK_H */
