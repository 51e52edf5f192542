// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the windows and servers that serve a thread besides its class.
 * They are those of its group, and those that waiters lend it.
 *
 * A thread that waits for a lock stays in its queue, asleep, and lends its
 * windows and servers (lend.c). The owner runs when the waiter would, in the
 * windows of the waiter or on the budget of the waiter's group. The kernel
 * charges that entity or group, whatever policy the owner has. An owner that
 * waits for a lock itself hands its loan on. Threads that wait for each other
 * therefore get no time outside of windows and budgets. A loan is never more
 * than the waiter itself could get.
 *
 * A thread under SCHED_DS has a claim on the servers of its group. A waiter can
 * lend it another claim, on the servers of another group (struct mt_claim).
 * Lent windows are a place in the entity's list of lent threads.
 *
 * Besides claims and windows, a thread has a class and a priority. A thread with
 * a claim of its own is normally in the class of ds_class.c, which never picks by
 * itself. There are two exceptions.
 *
 *   - On a CPU where its group has no budget, it runs under SCHED_OTHER: it
 *     fails closed.
 *   - A waiter that neither windows nor servers serve lends class and priority,
 *     and thus pays for the owner.
 *
 * A waiter that windows or servers serve lends no priority outside of these. For
 * threads of SCHED_TT see place.c.
 *
 * Windows and servers that open and close therefore change nothing here. The
 * kernel decides class and claims where it decides the priority of the thread,
 * in the context of the thread that changes it (rt_mutex_setprio(),
 * __sched_setscheduler()). If the thread moves to another CPU, the kernel
 * decides the class alone (arrive()).
 *
 * A relieved thread (ds_relief.c) has no claim of its own. A dying thread
 * continues under SCHED_OTHER where its claim does not serve it. A program that
 * removes the budget does not find such a thread any longer.
 */
#include <linux/timershield.h>

#include "internal.h"
#include "ds.h"

/*
 * For hooks in the hot paths of the scheduler and of locks. The key is never
 * switched off, because a loan can outlive a table or a budget.
 */
DEFINE_STATIC_KEY_FALSE(macrotick_used);

/*
 * Returns the group that must serve a thread with a policy, or NULL. Sets
 * @means_ds if the policy means SCHED_DS. In a group where SCHED_FIFO means
 * SCHED_DS, this also holds without a budget. Otherwise nothing would bound the
 * thread.
 */
struct mt_group *mt_serving_group(struct task_struct *p, int policy, bool *means_ds)
{
	struct mt_group *group;

	*means_ds = false;
	if (!rt_policy(policy))
		return NULL;
	group = mt_ds_group_of(p, means_ds);
	*means_ds |= policy == SCHED_DS;
	return *means_ds ? group : NULL;
}

/**
 * mt_decide - decides which claims and windows a thread must get
 * @rq: its run queue, locked, as is its pi_lock
 * @p: the thread
 * @policy: its policy, perhaps a new one; SCHED_TT for a member of that class
 * @normal_prio: its priority without loans, likewise
 * @prio: filled in with its priority outside of servers; for a member, with the
 *	priority that it is lent outside of its windows, or MAX_PRIO
 *
 * The caller then puts the decision into force (mt_next_class()). The claims of
 * the waiters may change meanwhile. Their groups exist until an RCU grace
 * period after this call.
 */
void mt_decide(struct rq *rq, struct task_struct *p, int policy, int normal_prio, int *prio)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	struct mt_loan loan = { .own_prio = normal_prio };
	bool means_ds;
	int lent;

	lockdep_assert_held(&p->pi_lock);
	lockdep_assert_rq_held(rq);
	loan.own = mt_serving_group(p, policy, &means_ds);
	lent = mt_borrow(p, cpu_of(rq), &loan);
	/* Loans on the servers of its own group must not serve it either. */
	if (unlikely(ds->relieved))
		loan.own = NULL;
	ds->outside = lent < MAX_PRIO || p->flags & PF_EXITING ||
		(unlikely(p->macrotick.pooled) && __fatal_signal_pending(p));
	ds->wanted_own = loan.own;
	ds->own_prio = clamp(loan.own_prio, 0, MAX_RT_PRIO - 1);
	ds->wanted_lent = loan.group;
	p->macrotick.wanted_by = loan.entity;
	ds->lent_prio = clamp(loan.prio, 0, MAX_RT_PRIO - 1);
	if (macrotick_policy(policy))
		*prio = lent;
	else if (mt_has_budget(loan.own, cpu_of(rq)) && !ds->outside)
		*prio = normal_prio;
	else
		*prio = min(means_ds ? p->static_prio : normal_prio, lent);
}

/* Whether the decision differs from the claims, windows or class of the thread. */
bool mt_moves(struct task_struct *p)
{
	const struct macrotick_ds *ds = &p->macrotick.ds;

	return p->macrotick.wanted_by != p->macrotick.lent_by ||
		ds->wanted_own != ds->own.group || ds->wanted_lent != ds->lent.group ||
		(ds->wanted_own && ds->own_prio != ds->own.prio) ||
		(ds->wanted_lent && ds->lent_prio != ds->lent.prio) ||
		(p->sched_class == &macrotick_ds_sched_class) !=
		(mt_has_budget(ds->wanted_own, task_cpu(p)) && !ds->outside);
}

static void settle(struct task_struct *p, struct mt_claim *claim, struct mt_group *wanted, u8 prio)
{
	struct mt_group *before = claim->group;

	claim->task = p;
	WRITE_ONCE(claim->prio, prio);
	if (before == wanted)
		return;
	if (wanted && !refcount_inc_not_zero(&wanted->ref))
		wanted = NULL;
	WRITE_ONCE(claim->group, wanted);
	if (before)
		mt_group_put(before);
}

static void settle_windows(struct task_struct *p, struct macrotick_served *wanted)
{
	struct macrotick_served *before = p->macrotick.lent_by;

	if (likely(before == wanted))
		return;
	if (wanted && !kref_get_unless_zero(&wanted->ref))
		wanted = NULL;
	WRITE_ONCE(p->macrotick.lent_by, wanted);
	if (before)
		mt_entity_put(before);
}

/**
 * mt_next_class - gives a thread the claims that were decided
 * @p: the thread; its run queue is locked. If it is queued, the caller is about to dequeue it
 * @class: its class without a claim
 *
 * Returns: its class.
 */
const struct sched_class *mt_next_class(struct task_struct *p, const struct sched_class *class)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	/* A dead thread drops its claims without a lock, now or earlier. */
	if (unlikely(READ_ONCE(p->__state) == TASK_DEAD))
		return class;
	/* A blocked thread hands on its loans: see macrotick_relays(). */
	if (unlikely(p->pi_blocked_on && mt_moves(p)))
		ds->relays = true;
	settle(p, &ds->own, ds->wanted_own, ds->own_prio);
	settle(p, &ds->lent, ds->wanted_lent, ds->lent_prio);
	settle_windows(p, p->macrotick.wanted_by);
	/* A call without a new decision must not find groups that no longer exist. */
	ds->wanted_own = ds->own.group;
	ds->wanted_lent = ds->lent.group;
	p->macrotick.wanted_by = p->macrotick.lent_by;
	if (mt_has_budget(ds->own.group, task_cpu(p)) && !ds->outside)
		return &macrotick_ds_sched_class;
	return class;
}

/* Whether only the budget of its group serves a thread on a CPU. */
static bool serves_alone(struct rq *rq, struct task_struct *p)
{
	return mt_has_budget(p->macrotick.ds.own.group, cpu_of(rq)) && !p->macrotick.ds.outside;
}

/*
 * Adapts the class to a new CPU. If the group has no budget there, the thread
 * runs under SCHED_OTHER. If it has one, only the budget serves the thread.
 */
static void arrive(struct rq *rq, struct task_struct *p)
{
	bool wanted = serves_alone(rq, p);
	const struct sched_class *before = p->sched_class;
	int oldprio = p->prio;

	if (likely(wanted == (before == &macrotick_ds_sched_class)))
		return;
	p->prio = wanted ? p->normal_prio : p->static_prio;
	p->sched_class = wanted ? &macrotick_ds_sched_class :
		__setscheduler_class(SCHED_NORMAL, p->prio);
	mt_class_changed(rq, p, before, oldprio);
}

/**
 * __macrotick_arrive - adapts the class of a thread before it is queued, perhaps on another CPU
 * @rq: the run queue, locked
 * @p: the thread, not queued
 *
 * Hook of enqueue_task().
 */
void __macrotick_arrive(struct rq *rq, struct task_struct *p)
{
	/* A thread that sleeps in the fair class changes its class when it wakes up. */
	if (p->macrotick.ds.own.group && !p->se.sched_delayed)
		arrive(rq, p);
}

/*
 * Adapts the class of a thread that the fair class kept on the run queue and
 * that has woken up. It may have been moved meanwhile to a CPU with a budget.
 * Returns whether the thread was queued again, with its claims and windows.
 */
static bool arrive_late(struct rq *rq, struct task_struct *p)
{
	if (!p->macrotick.ds.own.group || !serves_alone(rq, p))
		return false;
	dequeue_task(rq, p, DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK);
	arrive(rq, p);
	enqueue_task(rq, p, ENQUEUE_RESTORE | ENQUEUE_MOVE | ENQUEUE_NOCLOCK);
	return true;
}

/**
 * __macrotick_enqueued - queues the claims and windows of a thread that was queued
 * @rq: the run queue, locked
 * @p: the thread
 * @flags: as for enqueue_task()
 *
 * Hook of enqueue_task().
 */
void __macrotick_enqueued(struct rq *rq, struct task_struct *p, int flags)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	bool head = flags & ENQUEUE_HEAD;

	/* The thread sleeps. The fair class only keeps it on the run queue. */
	if (unlikely(p->se.sched_delayed))
		return;
	if (unlikely(flags & ENQUEUE_DELAYED) && arrive_late(rq, p))
		return;
	if (p->macrotick.entity || p->macrotick.lent_by)
		mt_enqueued(rq, p);
	if (ds->own.group) {
		mt_ds_link(rq, &ds->own, &ds->own.group->servers[cpu_of(rq)], head);
		mt_ds_wait(rq, p);
		if (unlikely(p->pi_blocked_on))
			mt_ds_note_offered(rq, p);
	}
	/*
	 * A deadline task has a runtime of its own, and no place in any queue
	 * when that is exhausted.
	 */
	if (unlikely(ds->lent.group) && !dl_prio(p->prio))
		mt_ds_link(rq, &ds->lent, &ds->lent.group->servers[cpu_of(rq)], head);
	if (ds->own.group || ds->lent.group)
		mt_ds_resched(rq);
}

/**
 * __macrotick_dequeue - dequeues the claims and windows of a thread that is dequeued
 * @rq: the run queue, locked
 * @p: the thread
 *
 * Hook of dequeue_task().
 */
void __macrotick_dequeue(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	if (p->macrotick.entity || p->macrotick.lent_to)
		mt_dequeue(rq, p);
	if (!ds->own.server && !ds->lent.server)
		return;
	if (p == rq->curr)
		mt_ds_account(rq);
	if (unlikely(ds->contends))
		mt_ds_forget_offered(rq, p);
	if (likely(ds->own.server)) {
		list_del(&ds->waits);
		mt_ds_unlink(rq, &ds->own);
	}
	if (unlikely(ds->lent.server))
		mt_ds_unlink(rq, &ds->lent);
}

#ifdef CONFIG_TIMERSHIELD

/* Returns the level of a group for TimerShield: that of its priority. */
static int level_of_group(const struct mt_group *group)
{
	return TS_LEVEL_GROUP((int)READ_ONCE(group->priority));
}

/**
 * macrotick_level - returns the importance of a sleeping thread, for TimerShield
 * @p: the thread; interrupts are off
 *
 * TimerShield asks again when the class or the claims of a thread change.
 *
 * Return: the highest level of those that may serve the thread, or
 * TS_LEVEL_NORMAL.
 */
int macrotick_level(const struct task_struct *p)
{
	const struct mt_group *own = READ_ONCE(p->macrotick.ds.own.group);
	const struct mt_group *lent = READ_ONCE(p->macrotick.ds.lent.group);
	int level = TS_LEVEL_NORMAL;

	if (READ_ONCE(p->policy) == SCHED_TT && READ_ONCE(p->normal_prio) == MACROTICK_PRIO)
		return READ_ONCE(p->macrotick.pooled) ? TS_LEVEL_POOL : TS_LEVEL_WINDOW;
	if (unlikely(READ_ONCE(p->macrotick.lent_by)))
		return TS_LEVEL_POOL;
	if (own && p->sched_class == &macrotick_ds_sched_class)
		level = level_of_group(own);
	return unlikely(lent) ? max(level, level_of_group(lent)) : level;
}

/* Returns the level of the window or server that is charged on a CPU, or TS_LEVEL_NORMAL. */
int macrotick_running_level(unsigned int cpu)
{
	const struct macrotick_served *entity = READ_ONCE(per_cpu(mt_cpus, cpu).charged);
	const struct mt_server *server = READ_ONCE(per_cpu(mt_ds_cpus, cpu).charged);

	if (entity)
		return entity->pool ? TS_LEVEL_POOL : TS_LEVEL_WINDOW;
	return server ? TS_LEVEL_GROUP((int)READ_ONCE(server->priority)) : TS_LEVEL_NORMAL;
}

#endif /* CONFIG_TIMERSHIELD */

#if defined(CONFIG_SCHED_CLASS_EXT) && !MT_LINUX_7

/*
 * Hook of sched_ext's walks over all threads, in place of task_rq_unlock(). A
 * change of class, or a thread of SCHED_DEADLINE, can have queued callbacks.
 * The next one to take the lock does not expect them. Since 7.2 the walks run
 * them.
 */
void macrotick_walk_unlock(struct rq *rq, struct task_struct *p, struct rq_flags *rf)
{
	struct balance_callback *head;

	/* The CPU stays online. */
	preempt_disable();
	head = splice_balance_callbacks(rq);
	task_rq_unlock(rq, p, rf);
	balance_callbacks(rq, head);
	preempt_enable();
}

#endif

/* Hook of finish_task_switch(): a thread is dead, and off its run queue. */
void __macrotick_dead(struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	settle(p, &ds->own, NULL, 0);
	settle(p, &ds->lent, NULL, 0);
	settle_windows(p, NULL);
	ds->wanted_own = NULL;
	ds->wanted_lent = NULL;
	p->macrotick.wanted_by = NULL;
	mt_forget_behind(p);
}

/* Decides class and claims again. The caller holds the pi_lock of the thread. */
void mt_redecide(struct task_struct *p)
{
	rt_mutex_setprio(p, task_has_pi_waiters(p) ? task_top_pi_waiter(p)->task : NULL);
}

/**
 * mt_refresh - decides again after a change of a thread's group or of the group's budget
 * @p: the thread, unlocked
 */
void mt_refresh(struct task_struct *p)
{
	scoped_guard(raw_spinlock_irqsave, &p->pi_lock) {
		/* No call would drop the reference to its group later. */
		if (READ_ONCE(p->__state) == TASK_DEAD)
			return;
		mt_redecide(p);
	}
	/* If it waits for a lock, its place among the waiters may change. */
	rt_mutex_adjust_pi(p);
}
