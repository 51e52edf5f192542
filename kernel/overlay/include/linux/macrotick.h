/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the view of time-triggered scheduling for the rest of the kernel.
 *
 * With CONFIG_MACROTICK off, every hook is an empty inline function or macro.
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
 * A thread that never waited is READY without a job. Windows serve it, but it has
 * no part in the accounting of jobs.
 */
enum macrotick_thread_state {
	MACROTICK_READY = 0,
	MACROTICK_WAITING,
};

/* A thread's claim on a group's servers (sched/macrotick/claim.c). */
struct mt_claim {
	struct mt_group		*group;		/* with a reference, or NULL */
	/* The server on the thread's CPU, while the thread is on its run queue */
	struct mt_server	*server;
	struct task_struct	*task;
	struct list_head	ready;		/* in a queue of the server */
	u8			prio;		/* like that of SCHED_FIFO, 0 to 98 */
	u8			queue;		/* the queue in which it is */
};

/*
 * The loan of waiters behind the first one, for a lock that the thread owns or
 * was offered (sched/macrotick/lend.c). The thread's pi_lock protects it.
 */
struct mt_behind {
	const void		*lock;		/* only to compare; NULL: no loan */
	struct mt_group		*group;		/* with a reference, or NULL */
	u8			prio;		/* of the lent claim on the group */
	u8			place;		/* priority outside of servers, or MAX_PRIO */
};

/*
 * The budgets that serve a thread. The lock of its run queue protects them. The
 * thread's pi_lock also protects decisions within one change of the thread.
 */
struct macrotick_ds {
	struct mt_claim		own;		/* on its control group */
	struct mt_claim		lent;		/* on the group of a waiter for one of its locks */
	struct mt_behind	behind;
	struct mt_group		*assigned;	/* of a kthread, with a reference: ds_kthreads.c */
	struct mt_group		*wanted_own;	/* decided, without references */
	struct mt_group		*wanted_lent;
	struct list_head	offers;		/* in the server's offered, while it contends */
	/* In its CPU's waiting, while queued with a claim of its own */
	struct list_head	waits;
	u64			waits_since;	/* see ds_relief.c; zero: it has not waited */
	u64			ran_then;
	unsigned long		slept_then;
	struct callback_head	end_relief;
	/* ns by which its sleep ends early; written by the thread */
	u32			led;
	u8			own_prio;	/* decided */
	u8			lent_prio;
	/* It has a place outside of servers: that of a waiter, or it exits */
	bool			outside;
	bool			contends;	/* ready, but blocked on a lock */
	bool			relays;		/* blocked, and its loan to the owner changes */
	bool			relieved;	/* without a claim until it returns to user mode */
	bool			at_door;	/* returns to user mode: it holds nothing */
};

/*
 * Embedded in task_struct. The lock of the thread's run queue protects it. For
 * a roaming entity, the entity's own lock also protects membership and job.
 */
struct macrotick_task {
	/* Kept beyond one membership */
	struct macrotick_ds	ds;
	struct list_head	lends;		/* in lent_to->lent */
	/* With a reference: an entity that lends its windows (claim.c) */
	struct macrotick_served	*lent_by;
	struct macrotick_served	*lent_to;	/* the same, while the thread is on its run queue */
	struct macrotick_served	*wanted_by;	/* decided, without a reference */

	/* The thread must look at its group (pool.c) */
	struct callback_head	look;

	/* It holds, or waits for, mt_control, and does not enter the class meanwhile (run.c) */
	bool			controls;
	/* the last field that is kept: see unlink_member() */
	bool			poked;

	struct macrotick_served	*entity;	/* NULL: not bound */
	struct macrotick_served	*inherits;	/* of a child that is not yet bound */
	struct list_head	member;		/* in entity->threads */
	struct list_head	ready;		/* in entity->ready, or pinned */
	/* In entity->contenders, or in its CPU's astray */
	struct list_head	contends;
	struct rb_node		turn;		/* in entity->turns */
	u64			turn_key;	/* its place among threads of its rank */
	u64			job;
	u64			nominal;
	u64			pending_job;
	u64			pending_nominal;
	/* when it was bound; earlier jobs do not concern it */
	u64			joined;
	u64			lost;
	u64			held;		/* not yet accounted; written by the thread */
	enum macrotick_thread_state state;
	bool			queued;	/* enqueued in the class, on its entity's CPU */
	bool			astray;		/* enqueued in the class, on another CPU */
	bool			linked;	/* in entity->ready */
	bool			ordered;	/* in entity->turns */
	bool			contending;	/* in entity->contenders */
	bool			pinned;		/* served outside windows until it may migrate */
	bool			periodic;	/* has waited at least once */
	bool			has_job;	/* released and not complete */
	bool			has_pending;
	bool			began;		/* its job has had the CPU */
	bool			hold;		/* its job is held until the nominal instant */
	bool			late;		/* the lead was too short, not yet accounted */
	bool			missed;		/* its job is a miss */
	bool			to_tell;	/* it must get a signal for that */
	bool			in_wait;	/* in the device's wait call */
	bool			unbinding;	/* leaves the class and the entity: no way back */
	bool			at_rest;	/* WAITING, with nothing to do before its job */
	bool			pooled;		/* the entity is a pool */
	bool			grouped;	/* joined with its control group */
	/* It has a place outside windows, unless it is at rest: see place.c */
	bool			outside;
	u8			own_policy;	/* in a pool: its policy outside the class */
	/* of SCHED_FIFO, SCHED_RR and SCHED_DS; otherwise zero */
	u8			own_priority;
	/* In a pool: the priority of a waiter for one of its locks, or MAX_PRIO */
	u8			lent;
	u8			turn_rank;	/* while ordered */
	u64			used;		/* in a pool: CPU time, weighted */
};

static inline bool macrotick_policy(int policy)
{
	return IS_ENABLED(CONFIG_MACROTICK) && policy == SCHED_TT;
}

static inline bool macrotick_ds_policy(int policy)
{
	return IS_ENABLED(CONFIG_MACROTICK) && policy == SCHED_DS;
}

/* Hook of sched_get_priority_max(2) and sched_get_priority_min(2), for policies unknown there. */
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
void mt_yielded(void);
bool macrotick_pins(struct task_struct *p, struct affinity_context *ctx);
bool macrotick_bound(struct task_struct *p);

/* Hook of sched_yield(2), after the switch; not of yield(): its callers may hold locks. */
#define macrotick_yielded()						\
do {									\
	if (unlikely(current->policy == SCHED_TT))			\
		mt_yielded();						\
} while (0)

#define macrotick_fatal_signal(p, state)				\
do {									\
	if (unlikely(((state) & TASK_WAKEKILL) && (p)->policy == SCHED_TT)) \
		__macrotick_fatal_signal(p);				\
} while (0)
#else
static inline void macrotick_exit_task(struct task_struct *p) { }

static inline bool macrotick_pins(struct task_struct *p, struct affinity_context *ctx)
{
	return false;
}

static inline bool macrotick_bound(struct task_struct *p) { return false; }
#define macrotick_fatal_signal(p, state) do { } while (0)
#define macrotick_yielded() do { } while (0)
#endif

#endif /* _LINUX_MACROTICK_H */
