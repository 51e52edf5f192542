/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the scheduler core's view of the class, included by sched.h.
 *
 * Every hook in core.c and syscalls.c is a one-line call of something
 * declared here. With no table installed each costs a patched-out branch or
 * one comparison outside the hot paths.
 */
#ifndef _KERNEL_SCHED_MACROTICK_H
#define _KERNEL_SCHED_MACROTICK_H

/*
 * Effective priority of a thread in the class. It equals that of SCHED_FIFO
 * 99, so that lock owners boosted by such a thread run above everything else
 * (above deadline tasks, because the class picks them itself); a member never
 * gets it from a donor (see boost.c), which makes policy and priority together
 * tell the class.
 */
#define MACROTICK_PRIO	0

#include <linux/macrotick_pi.h>

struct cgroup_taskset;

#ifdef CONFIG_MACROTICK

DECLARE_STATIC_KEY_FALSE(macrotick_installed);
DECLARE_STATIC_KEY_FALSE(macrotick_ds_used);
extern const struct sched_class macrotick_sched_class;
extern const struct sched_class macrotick_ds_sched_class;

/* Whether a class that is reached in the order of precedence must be asked. */
static inline bool macrotick_skips(const struct sched_class *class)
{
	return (class == &macrotick_sched_class && !static_branch_unlikely(&macrotick_installed)) ||
		(class == &macrotick_ds_sched_class && !static_branch_unlikely(&macrotick_ds_used));
}

static inline bool macrotick_class(int policy, int prio)
{
	return macrotick_policy(policy) && prio == MACROTICK_PRIO;
}

/*
 * Hook of enqueue_task_fair(): whether what runs where nothing counts as
 * runnable is a thread of the class, whose window has ended or which waits for
 * its next job, or one of SCHED_DS without budget, and not the idle task. Its
 * exec_start is its own.
 */
static inline bool macrotick_runs(const struct task_struct *curr)
{
	return curr->sched_class == &macrotick_sched_class || curr->sched_class == &macrotick_ds_sched_class;
}

int macrotick_check_setscheduler(struct task_struct *p, int policy);
int mt_own_policy(struct task_struct *p, const struct sched_attr *attr, int policy);
bool __macrotick_keeps(struct task_struct *p, const struct sched_attr *attr);
bool macrotick_membership_changed(struct task_struct *p);
int macrotick_setscheduler_prio(struct task_struct *p, int policy, const struct sched_attr *attr, int prio);
int __macrotick_setprio(struct task_struct *p, struct task_struct *donor, int prio);
void macrotick_owner_changed(struct task_struct *p);
int macrotick_ds_setprio(struct task_struct *p, struct task_struct *donor, int prio);
const struct sched_class *mt_ds_next_class(struct task_struct *p, const struct sched_class *class);
void macrotick_group_released(struct task_group *tg);
void macrotick_ds_init(void);
void macrotick_owner_woken(struct task_struct *p);

/* Whether a thread with a policy may be served by its group. */
static inline bool mt_ds_may_serve(int policy)
{
	return static_branch_unlikely(&macrotick_ds_used) &&
		(policy == SCHED_DS || policy == SCHED_FIFO || policy == SCHED_RR);
}

/* The same of a thread that may have a policy of its own in a pool. */
static inline bool mt_ds_concerns(const struct task_struct *p)
{
	return mt_ds_may_serve(READ_ONCE(p->policy)) ||
		(READ_ONCE(p->macrotick.pooled) && mt_ds_may_serve(READ_ONCE(p->macrotick.own_policy)));
}

/* Whether a thread stays on its CPU, whatever the balance: its group may have no budget on others. */
static inline bool macrotick_stays(const struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_ds_used) && READ_ONCE(p->macrotick.ds.relieved);
}

/* Whether rt_mutex_setprio() must go on although neither donor nor priority has changed. */
static inline bool macrotick_decides(struct task_struct *p, struct task_struct *donor)
{
	if (macrotick_policy(p->policy))
		return true;
	return static_branch_unlikely(&macrotick_ds_used) &&
		(mt_ds_may_serve(p->policy) || p->macrotick.ds.is_watched || p->macrotick.ds.group ||
		 (donor && (READ_ONCE(donor->macrotick.ds.group) || READ_ONCE(donor->macrotick.pooled))));
}

/*
 * Whether a thread is dequeued, or enqueued again, for a change that is none of
 * its class, priority, group and CPU: of its affinity, within spinlocks under
 * PREEMPT_RT. It has to be where it was. A macro: the flags come later.
 */
#define mt_keeps_its_place(flags)	(((flags) & (DEQUEUE_SAVE | DEQUEUE_MOVE)) == DEQUEUE_SAVE)

/* Whether what serves the thread, as was decided, is not what has served it. */
static inline bool macrotick_moves(struct task_struct *p)
{
	return p->macrotick.ds.wanted != p->macrotick.ds.group;
}

/* The class of a thread whose class would be @class otherwise. */
static inline const struct sched_class *macrotick_next_class(struct task_struct *p, const struct sched_class *class)
{
	if (static_branch_unlikely(&macrotick_ds_used))
		return mt_ds_next_class(p, class);
	return class;
}

/* Decided by macrotick_setscheduler_prio() already, in the same change. */
static inline int macrotick_normal_prio(struct task_struct *p, int prio)
{
	return macrotick_policy(p->policy) ? p->normal_prio : prio;
}

static inline int macrotick_setprio(struct task_struct *p, struct task_struct *donor, int prio)
{
	if (macrotick_policy(p->policy)) {
		prio = __macrotick_setprio(p, donor, prio);
		if (prio == MACROTICK_PRIO + 1)
			macrotick_owner_changed(p);
		return prio;
	}
	if (static_branch_unlikely(&macrotick_ds_used))
		prio = macrotick_ds_setprio(p, donor, prio);
	if (static_branch_unlikely(&macrotick_installed) && min(p->prio, prio) <= MACROTICK_PRIO + 1)
		macrotick_owner_changed(p);
	return prio;
}

/*
 * Hook of wakeup_preempt(): an owner that the class may pick before deadline
 * tasks (class.c) wakes up beside one, whose class does not know of that.
 */
static inline void macrotick_wakeup_preempt(struct task_struct *p)
{
	if (static_branch_unlikely(&macrotick_installed) && unlikely(p->prio <= MACROTICK_PRIO + 1))
		macrotick_owner_woken(p);
}

/*
 * Whether a change to @policy has deadline bandwidth to account for. A thread
 * that a deadline task lends its priority has none.
 */
static inline bool macrotick_dl_task(struct task_struct *p, int policy)
{
	if (macrotick_policy(policy) || macrotick_policy(p->policy))
		return p->policy == SCHED_DEADLINE;
	return dl_task(p);
}

/* Hook of __sched_setscheduler(), where the policy is to stay: a pool's thread has one of its own. */
static inline int macrotick_own_policy(struct task_struct *p, const struct sched_attr *attr, int policy)
{
	return unlikely(macrotick_policy(policy)) ? mt_own_policy(p, attr, policy) : policy;
}

/* Whether a change of policy was taken note of, and that is all. */
static inline bool macrotick_keeps(struct task_struct *p, const struct sched_attr *attr, bool user)
{
	return unlikely(user && macrotick_policy(p->policy)) && __macrotick_keeps(p, attr);
}

/* After a change that was only taken note of, with nothing locked: its place among those who wait for a lock. */
static inline void macrotick_kept(struct task_struct *p, bool pi)
{
	if (unlikely(p->macrotick.pooled) && pi)
		rt_mutex_adjust_pi(p);
}

void macrotick_group_fork(struct task_struct *p);
void macrotick_group_attach(struct cgroup_taskset *tset);
void macrotick_fork(struct task_struct *p);
void macrotick_cancel_fork(struct task_struct *p);
void macrotick_post_fork(struct task_struct *p);
int macrotick_cpu_deactivate(unsigned int cpu);
unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity);
bool macrotick_dl_promised(int cpu);
void macrotick_init(void);

#else /* !CONFIG_MACROTICK */

#define macrotick_sched_class	dl_sched_class
struct task_group;

static inline bool macrotick_skips(const struct sched_class *class) { return false; }
static inline bool macrotick_class(int policy, int prio) { return false; }
static inline bool macrotick_runs(const struct task_struct *curr) { return false; }
static inline int macrotick_check_setscheduler(struct task_struct *p, int policy) { return 0; }
static inline int macrotick_own_policy(struct task_struct *p, const struct sched_attr *attr, int policy)
{
	return policy;
}
static inline bool macrotick_keeps(struct task_struct *p, const struct sched_attr *attr, bool user) { return false; }
static inline void macrotick_kept(struct task_struct *p, bool pi) { }
static inline bool macrotick_membership_changed(struct task_struct *p) { return false; }
static inline int macrotick_setscheduler_prio(struct task_struct *p, int policy, const struct sched_attr *attr,
					       int prio)
{
	return prio;
}
static inline int macrotick_normal_prio(struct task_struct *p, int prio) { return prio; }
static inline int macrotick_setprio(struct task_struct *p, struct task_struct *donor, int prio) { return prio; }
static inline bool macrotick_dl_task(struct task_struct *p, int policy) { return dl_task(p); }
static inline void macrotick_wakeup_preempt(struct task_struct *p) { }
static inline bool macrotick_stays(const struct task_struct *p) { return false; }
#define macrotick_group_fork		NULL
static inline void macrotick_group_attach(struct cgroup_taskset *tset) { }
static inline void macrotick_fork(struct task_struct *p) { }
static inline void macrotick_cancel_fork(struct task_struct *p) { }
static inline void macrotick_post_fork(struct task_struct *p) { }
static inline int macrotick_cpu_deactivate(unsigned int cpu) { return 0; }
static inline unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity) { return capacity; }
static inline bool macrotick_dl_promised(int cpu) { return false; }
static inline bool macrotick_decides(struct task_struct *p, struct task_struct *donor) { return false; }
static inline bool macrotick_moves(struct task_struct *p) { return false; }
static inline const struct sched_class *macrotick_next_class(struct task_struct *p, const struct sched_class *class)
{
	return class;
}
static inline void macrotick_group_released(struct task_group *tg) { }
static inline void macrotick_init(void) { }

#endif /* CONFIG_MACROTICK */

#endif /* _KERNEL_SCHED_MACROTICK_H */
