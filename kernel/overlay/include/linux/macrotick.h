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

/* What a group's servers owe a thread (sched/macrotick/ds_claim.c). */
struct mt_claim {
	struct mt_group		*group;		/* with a reference; NULL: there is none */
	/* While the thread is on its run queue: of that CPU */
	struct mt_server	*server;
	struct task_struct	*task;
	struct list_head	ready;		/* in a queue of the server */
	u8			prio;		/* as of SCHED_FIFO, 0 to 98 */
	u8			queue;		/* in which it is */
};

/*
 * What those lend who wait for a lock that a thread owns, or was offered, behind
 * the first one (sched/macrotick/behind.c). Protected by its pi_lock.
 */
struct mt_behind {
	const void		*lock;		/* only to compare; NULL: nobody lends anything */
	struct mt_group		*group;		/* with a reference, or NULL */
	u8			prio;		/* of the claim on it */
	u8			place;		/* priority outside of servers, or MAX_PRIO */
};

/*
 * What serves a thread by budgets. Protected by the lock of its run queue; what
 * was decided within one change of the thread by its pi_lock, too.
 */
struct macrotick_ds {
	struct mt_claim		own;		/* on its control group */
	struct mt_claim		lent;		/* on that of who waits for a lock of it */
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
	u32			led;		/* ns its sleep ends early by; written by itself */
	u8			own_prio;	/* decided */
	u8			lent_prio;
	/* It has a place outside of servers: a waiter's, or it dies */
	bool			outside;
	bool			contends;	/* ready, but blocked on a lock */
	bool			relays;		/* blocked, and lends something else from now on */
	bool			relieved;	/* without a claim until it returns to user mode */
	bool			at_door;	/* of user mode: it holds nothing */
};

/*
 * Embedded in task_struct. Protected by the lock of the thread's run queue,
 * membership and job of a roaming entity's by the entity's own lock, too.
 */
struct macrotick_task {
	/* Not of one membership */
	struct macrotick_ds	ds;
	struct list_head	lends;		/* in lent_to->lent */
	/* With a reference: an entity that lends its windows (claim.c) */
	struct macrotick_served	*lent_by;
	struct macrotick_served	*lent_to;	/* the same, while the thread is on its run queue */
	struct macrotick_served	*wanted_by;	/* decided, without a reference */

	/* A look at the thread's group is due (pool.c) */
	struct callback_head	look;

	/* Has, or waits for, mt_control: it does not enter the class meanwhile (run.c) */
	bool			controls;
	bool			poked;		/* the last one: see unlink_member() */

	struct macrotick_served	*entity;	/* NULL: not bound */
	struct macrotick_served	*inherits;	/* of a child that is not yet bound */
	struct list_head	member;		/* in entity->threads */
	struct list_head	ready;		/* in entity->ready, or pinned */
	/* In entity->contenders, or those of its CPU that are astray */
	struct list_head	contends;
	struct rb_node		turn;		/* in entity->turns */
	u64			turn_key;	/* its place there, among those of its rank */
	u64			job;
	u64			nominal;
	u64			pending_job;
	u64			pending_nominal;
	u64			joined;		/* when it was bound; jobs before are not its own */
	u64			lost;
	u64			held;		/* not yet accounted; written by the thread */
	enum macrotick_thread_state state;
	bool			queued;	/* enqueued in the class, on its entity's CPU */
	bool			astray;		/* enqueued in the class, on another one */
	bool			linked;	/* in entity->ready */
	bool			ordered;	/* in entity->turns */
	bool			contending;	/* in entity->contenders */
	bool			pinned;		/* served outside windows until it may migrate */
	bool			periodic;	/* has waited at least once */
	bool			has_job;	/* released and not complete */
	bool			has_pending;
	bool			began;		/* its job has had the processor */
	bool			hold;		/* its job is held until the nominal instant */
	bool			late;		/* the lead was too short, not yet accounted */
	bool			missed;		/* its job is a miss */
	bool			to_tell;	/* it must be told so */
	bool			in_wait;	/* in the device's wait call */
	bool			unbinding;	/* leaves the class and the entity: no way back */
	bool			at_rest;	/* WAITING, and has nothing to do before its job */
	bool			pooled;		/* the entity is a pool */
	bool			grouped;	/* came with its control group */
	/* It has a place outside windows, unless it is at rest: see place.c */
	bool			outside;
	u8			own_policy;	/* of a pooled thread, outside the class */
	u8			own_priority;	/* SCHED_FIFO and SCHED_RR; else zero */
	/* In a pool: the priority of who waits for a lock of it, or MAX_PRIO */
	u8			lent;
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

/* Hooks of sched_get_priority_max(2) and its _min(2), for policies they do not know. */
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

/* Hook of sched_yield(2), behind the switch; not of yield(), whose callers may hold locks. */
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
