// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: threads join an entity, fork, exit and leave.
 *
 * Binding and policy are separate. A bound thread is pinned to the CPU of its
 * entity, or to the CPUs of its entity's windows. With the policy SCHED_TT it
 * is in the class while the table runs. Otherwise it is under the fair class,
 * because a stopped table must not freeze any thread. Every change of class
 * goes through __sched_setscheduler(), which handles priority inheritance.
 */
#include <linux/cpuset.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"
#include "ds.h"

/*
 * Hook of __sched_setscheduler(): a thread must be bound first. A thread of a
 * pool has no bandwidth except that of the pool.
 */
int macrotick_check_setscheduler(struct task_struct *p, int policy)
{
	bool takes_fifo;

	if (macrotick_policy(policy) && !p->macrotick.entity)
		return -ENOTCONN;
	/* A thread that leaves a pool keeps the policy that it had there. */
	if (policy == SCHED_DS && !mt_ds_group_of(p, &takes_fifo) && !p->macrotick.unbinding)
		return -ENOTCONN;
	/* Only windows have jobs. */
	if (policy == SCHED_DS && p->macrotick.entity && !p->macrotick.pooled)
		return -EBUSY;
	/*
	 * A leaving thread may leave the class sooner, when the table stops,
	 * and must not come back.
	 */
	if (macrotick_policy(policy) && p->macrotick.unbinding && !macrotick_policy(p->policy))
		return -ENOTCONN;
	return p->macrotick.pooled && dl_policy(policy) ? -EBUSY : 0;
}

/* Hook of __sched_setscheduler(): the policy stays, but the table started or stopped. */
bool macrotick_membership_changed(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;
	bool active = entity && mt_may_enter(p);

	if (!macrotick_policy(p->policy) || (p->macrotick.unbinding && active))
		return false;
	return p->normal_prio != mt_normal_prio(p, active);
}

/*
 * Hook of __set_cpus_allowed_ptr_locked(). It refuses a larger mask as well:
 * while the table is stopped, the load balancer would use it. For a thread of a
 * pool, which does not know about the pool, the call succeeds. The kernel
 * remembers the mask.
 *
 * The hook also notices when a thread may migrate again that was preempted
 * while it must not.
 */
bool macrotick_pins(struct task_struct *p, struct affinity_context *ctx)
{
	struct macrotick_served *entity = p->macrotick.entity;

	if (unlikely(mt_ds_may_serve(p->policy) &&
		     !(ctx->flags & (SCA_MIGRATE_ENABLE | SCA_MIGRATE_DISABLE))))
		mt_poke(p);	/* its group may have a budget on another CPU */
	if (likely(!entity))
		return false;
	if (ctx->flags & SCA_MIGRATE_ENABLE) {
		if (unlikely(p->macrotick.pinned))
			mt_end_pinning(task_rq(p), p);
	} else if (p->macrotick.pooled) {
		ctx->new_mask = mt_cpus_of(entity);
	}
	return !cpumask_equal(ctx->new_mask, mt_cpus_of(entity));
}

/* Hook of task_can_attach(): a cpuset must notice in time. */
bool macrotick_bound(struct task_struct *p)
{
	return (p->macrotick.entity && !p->macrotick.pooled) || p->macrotick.inherits;
}

static bool is_full(const struct macrotick_served *entity)
{
	if (unlikely(entity->roaming))
		return entity->nr_threads >= MACROTICK_MAX_MIGRATING;
	return !entity->pool && entity->nr_threads >= MACROTICK_MAX_THREADS;
}

/*
 * From now on the CPUs of the entity's windows have threads to serve, or no
 * longer have them. Their next interrupt finds that out.
 */
static void count_roaming(struct macrotick_served *entity, int by, u64 now)
{
	unsigned int cpu;

	for_each_cpu(cpu, entity->roaming->cpus) {
		struct mt_cpu *c = per_cpu_ptr(&mt_cpus, cpu);

		if (by > 0 && !atomic_read(&c->nr_roaming))
			WRITE_ONCE(c->roaming_since, now);
		/* Pairs with unattended_until(). */
		atomic_add_return_release(by, &c->nr_roaming);
		if (by > 0)
			mt_kick(c);
	}
}

static bool link_roaming(struct task_struct *p, struct macrotick_served *entity)
{
	guard(raw_spinlock)(&entity->roaming->lock);
	/* A removal of the entity looks for its threads behind this lock. */
	if (is_full(entity) || READ_ONCE(entity->removed))
		return false;
	p->macrotick.entity = entity;
	list_add_tail(&p->macrotick.member, &entity->threads);
	if (!entity->nr_threads++)
		count_roaming(entity, 1, p->macrotick.joined);
	return true;
}

/*
 * Makes a thread a member. Windows before that do not concern it: this first
 * brings the table up to now. Returns false if the entity has its maximum of
 * threads.
 */
static bool link_member(struct rq *rq, struct task_struct *p, struct macrotick_served *entity)
{
	u64 now = ktime_get();

	mt_advance(rq, now);
	p->macrotick.joined = now;
	if (unlikely(entity->roaming))
		return link_roaming(p, entity);
	if (is_full(entity))
		return false;
	p->macrotick.entity = entity;
	list_add_tail(&p->macrotick.member, &entity->threads);
	if (!entity->nr_threads++)
		list_add_tail(&entity->node, &mt_cpu_of(rq)->entities);
	mt_cpu_of(rq)->nr_threads++;
	return true;
}

static void unlink_roaming(struct task_struct *p, struct macrotick_served *entity)
{
	guard(raw_spinlock)(&entity->roaming->lock);
	list_del(&p->macrotick.member);
	if (!--entity->nr_threads)
		count_roaming(entity, -1, 0);
}

static void unlink_one(struct rq *rq, struct task_struct *p, struct macrotick_served *entity)
{
	list_del(&p->macrotick.member);
	if (!--entity->nr_threads)
		list_del(&entity->node);
	mt_cpu_of(rq)->nr_threads--;
}

static void unlink_member(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;

	mt_leave(p);
	if (unlikely(entity->roaming))
		unlink_roaming(p, entity);
	else
		unlink_one(rq, p, entity);
	memset_after(&p->macrotick, 0, poked);
}

static int reset_on_fork(struct task_struct *p)
{
	return p->sched_reset_on_fork ? SCHED_RESET_ON_FORK : 0;
}

/* Sets SCHED_TT: in the class or, if no table runs, outside. */
int mt_set_policy(struct task_struct *p)
{
	return sched_setscheduler_nocheck(p, SCHED_TT | reset_on_fork(p),
					  &(struct sched_param) { });
}

/* Whether the thread is on a CPU of its entity, and has its affinity. */
static bool is_in_place(struct rq *rq, struct task_struct *p, const struct macrotick_served *entity)
{
	const struct cpumask *cpus = mt_cpus_of(entity);

	return cpumask_test_cpu(cpu_of(rq), cpus) && cpumask_equal(&p->cpus_mask, cpus);
}

/* Why the thread cannot become a member, wherever it is. Under its rq lock. */
static int check_member(const struct task_struct *p, const struct macrotick_served *entity)
{
	if (p->macrotick.entity || (entity->pool && dl_policy(p->policy)))
		return -EBUSY;
	if (p->flags & PF_EXITING)
		return -ESRCH;
	return is_full(entity) ? -ENOSPC : 0;
}

/* Pinning does not ask the cpuset. The creator of a kernel thread decides where it runs. */
static int check_cpuset(struct task_struct *p, const struct macrotick_served *entity)
{
	cpumask_var_t allowed;
	int err = 0;

	if (p->flags & PF_KTHREAD)
		return 0;
	if (!alloc_cpumask_var(&allowed, GFP_KERNEL))
		return -ENOMEM;
	cpuset_cpus_allowed(p, allowed);
	if (!cpumask_subset(mt_cpus_of(entity), allowed))
		err = -EINVAL;
	free_cpumask_var(allowed);
	return err;
}

/*
 * Refuses a thread before it is pinned: a refused call leaves the affinity as
 * it is. A sleeping thread stays on its CPU, whatever its affinity.
 */
static int check_before_pin(struct task_struct *p, const struct macrotick_served *entity)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);
	int err = check_member(p, entity);

	if (!err && !(p->flags & PF_KTHREAD) && !task_on_rq_queued(p) &&
	    !cpumask_test_cpu(cpu_of(rq), mt_cpus_of(entity)))
		err = -EAGAIN;
	task_rq_unlock(rq, p, &rf);
	return err;
}

static int link_checked(struct task_struct *p, struct macrotick_served *entity)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);
	int err = check_member(p, entity);

	if (!err && !is_in_place(rq, p, entity))
		err = -EAGAIN;
	else if (!err && !link_member(rq, p, entity))
		err = -ENOSPC;
	if (!err && entity->pool)
		mt_pool_enter(p, p->policy, p->rt_priority);
	if (!err)
		mt_restart(entity);
	task_rq_unlock(rq, p, &rf);
	return err;
}

static void rearm_on_this_cpu(void *unused)
{
	struct rq *rq = this_rq();

	raw_spin_rq_lock(rq);
	mt_advance(rq, ktime_get());
	mt_rearm(rq);
	raw_spin_rq_unlock(rq);
}

static void copy_asked_affinity(struct cpumask *mask, struct task_struct *p)
{
	guard(raw_spinlock_irqsave)(&p->pi_lock);
	cpumask_copy(mask, task_user_cpus(p));
}

/*
 * Restores the affinity that the thread's user asked for. If those CPUs are
 * offline, the kernel forgets it, as select_fallback_rq() does when a thread
 * loses its CPUs.
 */
static void restore_affinity(struct task_struct *p)
{
	struct affinity_context ac = { };
	cpumask_var_t mask;

	if (p->flags & PF_KTHREAD)
		return;			/* it was not changed */
	if (!alloc_cpumask_var(&mask, GFP_KERNEL))
		return;			/* it stays on its CPUs */
	copy_asked_affinity(mask, p);
	ac.new_mask = mask;
	if (__sched_setaffinity(p, &ac) == -EINVAL) {
		cpuset_cpus_allowed(p, mask);
		ac = (struct affinity_context) { .new_mask = mask, .flags = SCA_USER };
		__set_cpus_allowed_ptr(p, &ac);
		kfree(ac.user_mask);
	}
	free_cpumask_var(mask);
}

/* Copies the affinity that the thread's user asked for, if any. The caller frees it. */
static int copy_asked(struct task_struct *p, struct cpumask **asked)
{
	struct cpumask *copy = alloc_user_cpus_ptr(NUMA_NO_NODE);

	if (!copy)
		return -ENOMEM;
	scoped_guard(raw_spinlock_irqsave, &p->pi_lock) {
		*asked = p->user_cpus_ptr ? copy : NULL;
		if (*asked)
			cpumask_copy(copy, p->user_cpus_ptr);
	}
	if (!*asked)
		kfree(copy);
	return 0;
}

/*
 * Pins a thread to several CPUs. The scheduler would restrict them to those
 * that the user asked for, unless the user itself asks. The function therefore
 * passes the user's mask again. If that mask changed meanwhile, the function
 * corrects it and returns -EAGAIN: the caller may retry.
 */
static int pin_to_several(struct task_struct *p, const struct cpumask *cpus)
{
	struct affinity_context ac = { .new_mask = cpus, .flags = SCA_USER };
	struct cpumask *before = NULL;
	int err = copy_asked(p, &before);

	err = err ?: copy_asked(p, &ac.user_mask);
	if (!err)
		err = __set_cpus_allowed_ptr(p, &ac);
	if (!err && (!before != !ac.user_mask ||
		     (before && !cpumask_equal(before, ac.user_mask)))) {
		__set_cpus_allowed_ptr(p, &ac);
		err = -EAGAIN;
	}
	kfree(before);
	kfree(ac.user_mask);
	return err;
}

/* Pins a thread. The creator of a kernel thread decides its affinity. */
static int pin(struct task_struct *p, struct macrotick_served *entity)
{
	if (!(p->flags & PF_KTHREAD) && entity->roaming)
		return pin_to_several(p, mt_cpus_of(entity));
	if (!(p->flags & PF_KTHREAD))
		return set_cpus_allowed_ptr(p, mt_cpus_of(entity));
	return entity->pool && cpumask_equal(&p->cpus_mask, cpumask_of(entity->cpu)) ? 0 : -EINVAL;
}

/* Under mt_control. */
static int bind_to(struct task_struct *p, struct macrotick_served *entity)
{
	int err = check_cpuset(p, entity) ?: check_before_pin(p, entity);

	if (err)
		return err;
	err = pin(p, entity);
	if (err == -EAGAIN)
		restore_affinity(p);
	if (err)
		return err;
	mt_entity_get(entity);
	err = link_checked(p, entity);
	if (err) {
		mt_entity_put(entity);
		restore_affinity(p);
		return err;
	}
	/* Otherwise link_roaming() has done it. */
	if (!entity->roaming)
		smp_call_function_single(entity->cpu, rearm_on_this_cpu, NULL, true);
	/* An entity with jobs may have been stopped; a pool is never stopped. */
	if (!entity->pool)
		mt_follow(entity);
	wake_up_all(&mt_start_wait);
	return 0;
}

/**
 * mt_bind - makes a thread a member of an entity; except in a pool, it keeps its policy
 * @p: the thread
 * @name: the entity's name
 *
 * Return: 0, or
 *
 *  * -ENOENT: no table, or no entity with this name
 *  * -EBUSY: the thread is bound already, or is under SCHED_DEADLINE and the entity is a pool
 *  * -ESRCH: it exits
 *  * -EINVAL: a kernel thread, unless the entity is a pool and the thread's affinity is
 *    exactly its CPU; or the cpuset lacks that CPU
 *  * -ENOSPC: the entity has MACROTICK_MAX_THREADS or _MIGRATING threads
 *  * -EAGAIN: the affinity changed meanwhile; or the thread sleeps and fell asleep on another
 *    CPU, where it stays until it wakes up
 */
int mt_bind(struct task_struct *p, const char *name)
{
	const struct mt_slot *slot;
	int err;

	mt_begin_control();
	scoped_guard(mt_control, &mt_control) {
		/* During a swap, entities of the old table only get no more threads. */
		slot = mt_find_slot(mt_staged ?: mt_table, name);
		err = slot ? bind_to(p, slot->entity) : -ENOENT;
	}
	mt_end_control();
	/* The thread holds no lock of this class any longer: it may be frozen. */
	if (!err && READ_ONCE(p->macrotick.pooled))
		mt_set_policy(p);
	return err;
}

/* The policy and priority of a thread after it leaves the class. */
struct mt_leaver {
	bool	inside;
	bool	outdated;	/* its policy changed meanwhile */
	int	policy;
	int	priority;
};

/*
 * Marks a thread as leaving. From then on it cannot enter the class again. A
 * thread that waits for its job would enter at once, and would do so each time
 * that it has to leave again. Returns whether the thread is bound.
 */
static bool begin_unbind(struct task_struct *p, struct mt_leaver *leaver)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);
	bool bound = p->macrotick.entity;

	p->macrotick.unbinding = bound;
	leaver->inside = macrotick_policy(p->policy);
	leaver->policy = p->macrotick.pooled ? p->macrotick.own_policy : SCHED_NORMAL;
	leaver->priority = p->macrotick.own_priority;
	task_rq_unlock(rq, p, &rf);
	return bound;
}

/*
 * Detaches a thread that is not in the class. Returns NULL if another call
 * detached it first. The thread may have been bound again, and then it may be
 * in the class. Or its policy changed before it left the class.
 */
static struct macrotick_served *detach(struct task_struct *p, struct mt_leaver *leaver, bool *again)
{
	struct macrotick_served *entity = NULL;
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);

	leaver->outdated = p->macrotick.pooled &&
		(p->macrotick.own_policy != leaver->policy ||
		 p->macrotick.own_priority != leaver->priority);
	*again = p->macrotick.entity && (macrotick_policy(p->policy) || leaver->outdated);
	if (!*again) {
		entity = p->macrotick.entity;
		if (entity)
			unlink_member(rq, p);
	}
	task_rq_unlock(rq, p, &rf);
	return entity;
}

static void leave_class(struct task_struct *p, const struct mt_leaver *leaver)
{
	struct sched_param own = { .sched_priority = leaver->priority };

	if (sched_setscheduler_nocheck(p, leaver->policy | reset_on_fork(p), &own))
		sched_setscheduler_nocheck(p, SCHED_NORMAL | reset_on_fork(p),
					   &(struct sched_param) { });
}

/**
 * mt_unbind - ends a membership; the thread continues under SCHED_NORMAL, or its policy in the pool
 * @p: the thread
 *
 * Return: 0, or -ENOTCONN if the thread was not bound.
 */
int mt_unbind(struct task_struct *p)
{
	struct macrotick_served *entity;
	struct mt_leaver leaver = { };
	bool again;

	do {
		if (!begin_unbind(p, &leaver))
			return -ENOTCONN;
		if (leaver.inside || leaver.outdated)
			leave_class(p, &leaver);
		entity = detach(p, &leaver, &again);
	} while (again);
	if (!entity)
		return -ENOTCONN;
	if (!(p->flags & PF_EXITING))
		restore_affinity(p);
	wake_up_all(&mt_start_wait);	/* the thread may wait for the table to start */
	mt_entity_put(entity);
	return 0;
}

/* Hook of do_exit(), after PF_EXITING: an exit takes long and is part of no job. */
void macrotick_exit_task(struct task_struct *p)
{
	struct rq_flags rf;
	struct rq *rq;

	if (static_branch_unlikely(&macrotick_ds_used))
		mt_ds_exit(p);
	if (!static_branch_unlikely(&macrotick_installed))
		return;
	/* Any call that binds the thread is complete, or will see PF_EXITING. */
	rq = task_rq_lock(p, &rf);
	task_rq_unlock(rq, p, &rf);
	if (p->macrotick.entity)
		mt_unbind(p);
}

/* Hook of signal_wake_up_state(), under siglock: a dying thread has a place outside its windows. */
void __macrotick_fatal_signal(struct task_struct *p)
{
	guard(raw_spinlock_irqsave)(&p->pi_lock);
	mt_redecide(p);
}

static void leave_at_fork(struct task_struct *p)
{
	p->policy = SCHED_NORMAL;
	p->prio = p->normal_prio = p->static_prio;
	p->sched_class = __setscheduler_class(p->policy, p->prio);
}

/* Until macrotick_post_fork(), when the child is in a group. */
static void leave_ds_at_fork(struct task_struct *p)
{
	p->prio = p->static_prio;
	p->sched_class = __setscheduler_class(p->policy, p->prio);
}

/* Whether the parent is in the class; it may have entered since it was copied. */
static bool is_child_of_member(struct task_struct *p)
{
	return macrotick_policy(p->policy) ||
		(p->prio == MACROTICK_PRIO && p->normal_prio != MACROTICK_PRIO);
}

/*
 * Hook of sched_fork(): a child of a thread in the class joins its entity,
 * unless SCHED_FLAG_RESET_ON_FORK is set. It becomes a member in
 * macrotick_post_fork(), when the fork can no longer fail.
 */
void macrotick_fork(struct task_struct *p)
{
	struct macrotick_served *entity = NULL;
	struct rq_flags rf;
	struct rq *rq;

	memset(&p->macrotick, 0, sizeof(p->macrotick));
	if (unlikely(mt_ds_may_serve(p->policy)))
		leave_ds_at_fork(p);
	if (likely(!is_child_of_member(p)))
		return;
	leave_at_fork(p);
	if (!current->macrotick.pooled &&
	    (current->sched_reset_on_fork || p->flags & (PF_IO_WORKER | PF_USER_WORKER)))
		return;
	rq = task_rq_lock(current, &rf);
	entity = current->macrotick.entity;
	if (entity)
		mt_entity_get(entity);
	task_rq_unlock(rq, current, &rf);
	p->macrotick.inherits = entity;
}

/* Hook of sched_cancel_fork(). */
void macrotick_cancel_fork(struct task_struct *p)
{
	if (p->macrotick.inherits)
		mt_entity_put(p->macrotick.inherits);
	p->macrotick.inherits = NULL;
}

/* The child of a pool's thread gets its parent's policy there, unless that resets on fork. */
static void enter_as_child(struct task_struct *p)
{
	struct macrotick_task *m = &current->macrotick;

	if (!m->pooled || current->sched_reset_on_fork)
		mt_pool_enter(p, SCHED_NORMAL, 0);
	else
		mt_pool_enter(p, m->own_policy, m->own_priority);
	p->macrotick.grouped = m->grouped;
}

/* Hook of sched_post_fork(): the child is not yet awake. */
void macrotick_post_fork(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.inherits;
	bool joins;
	struct rq_flags rf;
	struct rq *rq;

	if (unlikely(mt_ds_may_serve(p->policy)))
		mt_refresh(p);
	if (likely(!entity))
		return;
	rq = task_rq_lock(p, &rf);
	p->macrotick.inherits = NULL;
	joins = !p->macrotick.entity && !entity->removed && is_in_place(rq, p, entity) &&
		link_member(rq, p, entity);
	if (joins && entity->pool)
		enter_as_child(p);
	task_rq_unlock(rq, p, &rf);
	if (!joins)
		mt_entity_put(entity);
	else
		sched_setscheduler_nocheck(p, SCHED_TT, &(struct sched_param) { });
}
