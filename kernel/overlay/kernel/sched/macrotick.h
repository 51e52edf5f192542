/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the scheduler core's view of the class, included by sched.h.
 *
 * Every hook in core.c and syscalls.c is a one-line call of a function or macro
 * declared here. Without an installed table, each costs a patched-out branch,
 * or one comparison outside the hot paths.
 */
#ifndef _KERNEL_SCHED_MACROTICK_H
#define _KERNEL_SCHED_MACROTICK_H

/*
 * The effective priority of a thread in the class. It equals that of SCHED_FIFO
 * 99. A lock owner boosted by such a thread runs above everything else. It runs
 * above deadline tasks because the class picks it itself. A member never gets
 * this priority from a donor (see place.c). Policy and priority together
 * therefore determine the class.
 */
#define MACROTICK_PRIO	0

#include <linux/macrotick_pi.h>

struct cgroup_taskset;
struct root_domain;
struct rq_flags;

#ifdef CONFIG_MACROTICK

DECLARE_STATIC_KEY_FALSE(macrotick_installed);
DECLARE_STATIC_KEY_FALSE(macrotick_tt_used);
DECLARE_STATIC_KEY_FALSE(macrotick_ds_used);
extern const struct sched_class macrotick_sched_class;
extern const struct sched_class macrotick_ds_sched_class;

/* Whether the core can skip a class that it reaches in the order of precedence. */
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
 * Hook of enqueue_task_fair(), for a CPU without a runnable thread. Returns
 * whether the running thread is a thread of these classes, and not the idle
 * task. Its window or its group's budget has ended, or it waits for its next
 * job. Its exec_start is its own.
 */
static inline bool macrotick_runs(const struct task_struct *curr)
{
	return curr->sched_class == &macrotick_sched_class ||
		curr->sched_class == &macrotick_ds_sched_class;
}

int macrotick_check_setscheduler(struct task_struct *p, int policy);
int mt_own_policy(struct task_struct *p, const struct sched_attr *attr, int policy);
bool __macrotick_keeps(struct task_struct *p, const struct sched_attr *attr);
bool macrotick_membership_changed(struct task_struct *p);
int __macrotick_setscheduler_prio(struct task_struct *p, int policy, const struct sched_attr *attr);
int __macrotick_setprio(struct task_struct *p);
const struct sched_class *mt_next_class(struct task_struct *p, const struct sched_class *class);
bool mt_moves(struct task_struct *p);
void mt_refresh(struct task_struct *p);
void mt_tick(struct rq *rq);
void macrotick_group_released(struct task_group *tg);
void macrotick_ds_init(void);
void __macrotick_arrive(struct rq *rq, struct task_struct *p);
void __macrotick_enqueued(struct rq *rq, struct task_struct *p, int flags);
void __macrotick_dequeue(struct rq *rq, struct task_struct *p);
void mt_run(struct rq *rq, struct task_struct *next);
void mt_ds_run(struct rq *rq, struct task_struct *next);
void __macrotick_dead(struct task_struct *p);
void macrotick_walk_unlock(struct rq *rq, struct task_struct *p, struct rq_flags *rf);

/* Whether the group of a thread with this policy may serve it. */
static inline bool mt_ds_may_serve(int policy)
{
	return static_branch_unlikely(&macrotick_ds_used) &&
		(policy == SCHED_DS || policy == SCHED_FIFO || policy == SCHED_RR);
}

/* The same for a thread that may have an own policy in a pool. */
static inline bool mt_ds_concerns(const struct task_struct *p)
{
	return mt_ds_may_serve(READ_ONCE(p->policy)) ||
		(READ_ONCE(p->macrotick.pooled) &&
		 mt_ds_may_serve(READ_ONCE(p->macrotick.own_policy)));
}

/*
 * Whether a thread stays on its CPU, whatever the load balancer wants. Its group,
 * or its waiter, may have no budget and no windows on other CPUs.
 */
static inline bool macrotick_stays(const struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_used) &&
		(READ_ONCE(p->macrotick.ds.relieved) || READ_ONCE(p->macrotick.ds.lent.group) ||
		 READ_ONCE(p->macrotick.lent_by));
}

/* Whether a waiter has something to lend besides its priority. */
static inline bool mt_lends_more(const struct task_struct *donor)
{
	return macrotick_policy(donor->policy) || READ_ONCE(donor->macrotick.lent_by) ||
		READ_ONCE(donor->macrotick.ds.own.group) ||
		READ_ONCE(donor->macrotick.ds.lent.group);
}

/* Whether rt_mutex_setprio() must continue although donor and priority are unchanged. */
static inline bool macrotick_decides(struct task_struct *p, struct task_struct *donor)
{
	return static_branch_unlikely(&macrotick_used) &&
		(mt_lends_more(p) || mt_ds_may_serve(p->policy) || p->macrotick.ds.behind.lock ||
		 (donor && mt_lends_more(donor)));
}

/*
 * Whether a thread is dequeued or queued for a change of its affinity only,
 * within spinlocks under PREEMPT_RT. Such a change keeps the class, priority,
 * group and CPU of the thread. The thread must keep its place. A macro: the flags
 * are defined later.
 */
#define mt_keeps_its_place(flags)	(((flags) & (DEQUEUE_SAVE | DEQUEUE_MOVE)) == DEQUEUE_SAVE)

/* Whether the decision on the thread differs from its claims, windows or class. */
static inline bool macrotick_moves(struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_used) && mt_moves(p);
}

/* Whether windows or servers may serve a thread, or serve it while it is on a run queue. */
static inline bool mt_is_concerned_with(const struct task_struct *p)
{
	return static_branch_unlikely(&macrotick_used) &&
		(p->macrotick.entity || p->macrotick.ds.own.group || p->macrotick.ds.lent.group ||
		 p->macrotick.lent_by || p->macrotick.ds.own.server ||
		 p->macrotick.ds.lent.server || p->macrotick.lent_to);
}

/* Hooks of enqueue_task() and dequeue_task(). Macros: the flags are defined later. */
#define macrotick_arrive(rq, p, flags)							\
do {											\
	if (mt_is_concerned_with(p) && !((flags) & (ENQUEUE_RESTORE | ENQUEUE_DELAYED)))	\
		__macrotick_arrive(rq, p);						\
} while (0)

#define macrotick_enqueued(rq, p, flags)						\
do {											\
	if (mt_is_concerned_with(p) && !mt_keeps_its_place(flags))			\
		__macrotick_enqueued(rq, p, flags);					\
} while (0)

#define macrotick_dequeue(rq, p, flags)							\
do {											\
	if (mt_is_concerned_with(p) && !mt_keeps_its_place(flags))			\
		__macrotick_dequeue(rq, p);						\
} while (0)

/* Hook of __schedule(): @next has been picked, but may be the thread that ran before. */
static inline void macrotick_run(struct rq *rq, struct task_struct *next)
{
	if (static_branch_unlikely(&macrotick_tt_used))
		mt_run(rq, next);
	if (static_branch_unlikely(&macrotick_ds_used))
		mt_ds_run(rq, next);
}

/* Hook of the tick. */
static inline void macrotick_tick(struct rq *rq)
{
	if (static_branch_unlikely(&macrotick_installed))
		mt_tick(rq);
}

/* Hook of finish_task_switch(), for a thread that has exited. */
static inline void macrotick_dead(struct task_struct *p)
{
	if (static_branch_unlikely(&macrotick_used))
		__macrotick_dead(p);
}

/* Returns the class of a thread that would otherwise have @class. */
static inline const struct sched_class *
macrotick_next_class(struct task_struct *p, const struct sched_class *class)
{
	return static_branch_unlikely(&macrotick_used) ? mt_next_class(p, class) : class;
}

/* Returns the priority that macrotick_setscheduler_prio() decided already, in the same change. */
static inline int macrotick_normal_prio(struct task_struct *p, int prio)
{
	return macrotick_policy(p->policy) ? p->normal_prio : prio;
}

/* Hook of rt_mutex_setprio(): returns the priority of a thread that would otherwise have @prio. */
static inline int macrotick_setprio(struct task_struct *p, int prio)
{
	return static_branch_unlikely(&macrotick_used) ? __macrotick_setprio(p) : prio;
}

/* Hook of __sched_setscheduler(), for a change of parameters: likewise. */
static inline int macrotick_setscheduler_prio(struct task_struct *p, int policy,
					      const struct sched_attr *attr, int prio)
{
	if (static_branch_unlikely(&macrotick_used))
		return __macrotick_setscheduler_prio(p, policy, attr);
	return prio;
}

/*
 * Whether a change to @policy must account for deadline bandwidth. A thread
 * that a deadline task lends its priority has no bandwidth.
 */
static inline bool macrotick_dl_task(struct task_struct *p, int policy)
{
	if (macrotick_policy(policy) || macrotick_policy(p->policy))
		return p->policy == SCHED_DEADLINE;
	return dl_task(p);
}

/* Hook of __sched_setscheduler(), if the policy stays: a pool's thread has its own policy. */
static inline int macrotick_own_policy(struct task_struct *p, const struct sched_attr *attr,
				       int policy)
{
	return unlikely(macrotick_policy(policy)) ? mt_own_policy(p, attr, policy) : policy;
}

/* Whether a change of policy was only recorded. */
static inline bool macrotick_keeps(struct task_struct *p, const struct sched_attr *attr, bool user)
{
	return unlikely(user && macrotick_policy(p->policy)) && __macrotick_keeps(p, attr);
}

/*
 * Hook after a change that was only recorded, with nothing locked: the change
 * may affect the thread's service outside its windows.
 */
static inline void macrotick_kept(struct task_struct *p, bool pi)
{
	if (unlikely(p->macrotick.pooled) && pi)
		mt_refresh(p);
}

void macrotick_group_fork(struct task_struct *p);
void macrotick_group_attach(struct cgroup_taskset *tset);
void macrotick_fork(struct task_struct *p);
void macrotick_cancel_fork(struct task_struct *p);
void macrotick_post_fork(struct task_struct *p);
int macrotick_cpu_deactivate(unsigned int cpu);
unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity);
unsigned long macrotick_dl_capacity_without(int cpu, unsigned long capacity);
bool macrotick_dl_promised(int cpu);
u64 macrotick_dl_servers(const struct root_domain *rd);
int macrotick_dl_validate(u64 limit);
void macrotick_init(void);

#else /* !CONFIG_MACROTICK */

#define macrotick_sched_class	dl_sched_class
struct task_group;

static inline bool macrotick_skips(const struct sched_class *class) { return false; }
static inline bool macrotick_class(int policy, int prio) { return false; }
static inline bool macrotick_runs(const struct task_struct *curr) { return false; }
static inline int macrotick_check_setscheduler(struct task_struct *p, int policy) { return 0; }
static inline int macrotick_own_policy(struct task_struct *p, const struct sched_attr *attr,
				       int policy)
{
	return policy;
}

static inline bool macrotick_keeps(struct task_struct *p, const struct sched_attr *attr, bool user)
{
	return false;
}

static inline void macrotick_kept(struct task_struct *p, bool pi) { }
static inline bool macrotick_membership_changed(struct task_struct *p) { return false; }
static inline int macrotick_setscheduler_prio(struct task_struct *p, int policy,
					      const struct sched_attr *attr, int prio)
{
	return prio;
}
static inline int macrotick_normal_prio(struct task_struct *p, int prio) { return prio; }
static inline int macrotick_setprio(struct task_struct *p, int prio) { return prio; }
static inline void macrotick_tick(struct rq *rq) { }
static inline bool macrotick_dl_task(struct task_struct *p, int policy) { return dl_task(p); }
static inline bool macrotick_stays(const struct task_struct *p) { return false; }
#define macrotick_group_fork		NULL
static inline void macrotick_group_attach(struct cgroup_taskset *tset) { }
static inline void macrotick_fork(struct task_struct *p) { }
static inline void macrotick_cancel_fork(struct task_struct *p) { }
static inline void macrotick_post_fork(struct task_struct *p) { }
static inline int macrotick_cpu_deactivate(unsigned int cpu) { return 0; }

static inline unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity)
{
	return capacity;
}

static inline unsigned long macrotick_dl_capacity_without(int cpu, unsigned long capacity)
{
	return capacity;
}

static inline bool macrotick_dl_promised(int cpu) { return false; }
static inline u64 macrotick_dl_servers(const struct root_domain *rd) { return 0; }
static inline int macrotick_dl_validate(u64 limit) { return 0; }

static inline bool macrotick_decides(struct task_struct *p, struct task_struct *donor)
{
	return false;
}

static inline bool macrotick_moves(struct task_struct *p) { return false; }
static inline bool mt_is_concerned_with(const struct task_struct *p) { return false; }
#define macrotick_arrive(rq, p, flags) do { } while (0)
#define macrotick_enqueued(rq, p, flags) do { } while (0)
#define macrotick_dequeue(rq, p, flags) do { } while (0)
static inline void macrotick_run(struct rq *rq, struct task_struct *next) { }
static inline void macrotick_dead(struct task_struct *p) { }
static inline const struct sched_class *
macrotick_next_class(struct task_struct *p, const struct sched_class *class)
{
	return class;
}
#define macrotick_walk_unlock(rq, p, rf) task_rq_unlock(rq, p, rf)
static inline void macrotick_group_released(struct task_group *tg) { }
static inline void macrotick_init(void) { }

#endif /* CONFIG_MACROTICK */

/*
 * Hook of sched_ext's walks over all threads, which dequeue and queue each one.
 * A thread that stays in a class of this file must keep its place. A macro: the
 * flags are defined later.
 */
#define macrotick_walk_flags(p, next_class)				\
	(DEQUEUE_SAVE |							\
	 ((p)->sched_class == (next_class) && mt_is_concerned_with(p) ? 0 : DEQUEUE_MOVE))

#endif /* _KERNEL_SCHED_MACROTICK_H */
