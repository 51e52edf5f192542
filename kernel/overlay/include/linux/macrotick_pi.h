/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the priority that a thread lends to the owner of a lock, and its
 * place among the waiters.
 */
#ifndef _LINUX_MACROTICK_PI_H
#define _LINUX_MACROTICK_PI_H

#include <linux/jump_label.h>
#include <linux/sched.h>

struct rt_mutex_base;

#ifdef CONFIG_MACROTICK
DECLARE_STATIC_KEY_FALSE(macrotick_used);

int mt_own_prio(struct task_struct *p);
void __macrotick_unblocked(struct rt_mutex_base *lock, struct task_struct *p);
void __macrotick_takes(struct rt_mutex_base *lock, struct task_struct *p);
void __macrotick_offered(struct rt_mutex_base *lock);
bool __macrotick_behind(struct rt_mutex_base *lock, struct task_struct *owner);
void __macrotick_left(struct rt_mutex_base *lock, struct task_struct *owner);
void mt_forget_behind(struct task_struct *p);

/* A pool's thread lends its own priority or a lent one, never that of its windows. */
static inline int macrotick_lent_prio(struct task_struct *p)
{
	if (likely(!p->macrotick.pooled))
		return p->prio;
	return min_t(int, mt_own_prio(p), READ_ONCE(p->macrotick.lent));
}

/*
 * Returns a thread's place among the waiters of a lock: that of its claims or
 * windows, if they are better.
 */
static inline int macrotick_waiter_prio(struct task_struct *p)
{
	int prio = macrotick_lent_prio(p);

	if (!static_branch_unlikely(&macrotick_used))
		return prio;
	if (p->macrotick.lent_by || (macrotick_policy(p->policy) && !p->macrotick.pooled))
		prio = min(prio, p->macrotick.lent_by ? 0 : p->normal_prio);
	if (p->macrotick.ds.own.group)
		prio = min_t(int, prio, p->macrotick.ds.own.prio);
	if (p->macrotick.ds.lent.group)
		prio = min_t(int, prio, p->macrotick.ds.lent.prio);
	return prio;
}

/* Whether its loan changes although its place stays the same. */
static inline bool macrotick_relays(struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_used) && p->macrotick.ds.relays;
}

/* The next owner in the chain is about to get the changed loan. */
static inline void macrotick_relayed(struct task_struct *p)
{
	if (static_branch_unlikely(&macrotick_used))
		p->macrotick.ds.relays = false;
}

/*
 * Whether the thread must not spin for a lock: its window, or the budget of its
 * group, may be over.
 */
static inline bool macrotick_contends(struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_used) &&
		(READ_ONCE(p->macrotick.ds.contends) || READ_ONCE(p->macrotick.contending) ||
		 READ_ONCE(p->macrotick.pinned));
}

/* The thread is no longer blocked, and did not get the lock. Its pi_lock is locked. */
static inline void macrotick_unblocked(struct rt_mutex_base *lock, struct task_struct *p)
{
	if (static_branch_unlikely(&macrotick_used) &&
	    unlikely(p->macrotick.ds.contends || p->macrotick.contending ||
		     p->macrotick.ds.behind.lock == lock))
		__macrotick_unblocked(lock, p);
}

/* The thread owns a lock, and others may still wait for it. Its pi_lock is locked. */
static inline void macrotick_takes(struct rt_mutex_base *lock, struct task_struct *p)
{
	if (static_branch_unlikely(&macrotick_used))
		__macrotick_takes(lock, p);
}

/* The lock has no owner, and its first waiter was woken up to take it. */
static inline void macrotick_offered(struct rt_mutex_base *lock)
{
	if (static_branch_unlikely(&macrotick_used))
		__macrotick_offered(lock);
}

/*
 * A thread waits for an owner's lock, or its priority there changed. Both the
 * lock's wait_lock and the owner's pi_lock are locked. Returns true if the
 * owner is blocked itself, and the loan that it hands on changes.
 */
static inline bool macrotick_behind(struct rt_mutex_base *lock, struct task_struct *owner)
{
	return static_branch_unlikely(&macrotick_used) && __macrotick_behind(lock, owner);
}

/* A thread gave up waiting for a lock. The lock's wait_lock is locked, and no pi_lock. */
static inline void macrotick_left(struct rt_mutex_base *lock, struct task_struct *owner)
{
	if (static_branch_unlikely(&macrotick_used) && owner)
		__macrotick_left(lock, owner);
}

/* The current thread releases a lock that others wait for. Its pi_lock is locked. */
static inline void macrotick_gives_back(struct rt_mutex_base *lock)
{
	if (static_branch_unlikely(&macrotick_used) && current->macrotick.ds.behind.lock == lock)
		mt_forget_behind(current);
}
#else
static inline int macrotick_lent_prio(struct task_struct *p) { return p->prio; }
static inline int macrotick_waiter_prio(struct task_struct *p) { return p->prio; }
static inline bool macrotick_relays(struct task_struct *p) { return false; }
static inline void macrotick_relayed(struct task_struct *p) { }
static inline bool macrotick_contends(struct task_struct *p) { return false; }
#define macrotick_unblocked(lock, p) do { } while (0)
#define macrotick_takes(lock, p) do { } while (0)
#define macrotick_offered(lock) do { } while (0)

static inline bool macrotick_behind(struct rt_mutex_base *lock, struct task_struct *owner)
{
	return false;
}

#define macrotick_left(lock, owner) do { } while (0)
#define macrotick_gives_back(lock) do { } while (0)
#endif

#endif /* _LINUX_MACROTICK_PI_H */
