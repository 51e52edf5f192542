// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: what serves a thread besides its class: its group's servers, and
 * windows and servers that it is lent.
 *
 * A thread that waits for a lock stays where it is, asleep, and lends what
 * serves it (lend.c): the owner runs when the waiter would, in the waiter's
 * windows, or on the budget of its group, and is charged to that, whatever policy
 * the owner has. What is lent to one who waits itself is handed on. So nobody gets time outside
 * of windows and budgets by having his own threads wait for each other, and
 * lending is bounded by what the waiter could itself be served.
 *
 * A thread under SCHED_DS has a claim on its group's servers, and may be lent one
 * on another group's (struct mt_claim). Windows are lent as a place among the lent
 * ones of an entity.
 *
 * What a thread has besides that is a class and a priority. One with a claim of
 * its own has none while its group has a budget on its CPU: it is in the class of
 * ds_class.c, which never picks by itself. It has those of
 *   - SCHED_OTHER where its group has no budget: it fails closed,
 *   - a waiter that is served otherwise: whoever waits pays for it.
 * Whoever waits on windows or servers lends no priority outside of these. For
 * threads of SCHED_TT see place.c.
 *
 * So a window or a server that opens or closes changes nothing here. Class and
 * claims are decided where the priority of a thread is, in the context of whoever
 * changes that (rt_mutex_setprio(), __sched_setscheduler()), and the class alone
 * when it comes to another CPU (arrive()).
 *
 * Who is relieved (ds_relief.c) has no claim of its own. Who dies goes on under
 * SCHED_OTHER where its claim does not serve it: nobody who takes a budget away
 * finds it any longer.
 */
#include <linux/timershield.h>

#include "internal.h"
#include "ds.h"

/*
 * For hooks in the hot paths of the scheduler and of locks. For good: what is lent
 * may outlive a table or a budget.
 */
DEFINE_STATIC_KEY_FALSE(macrotick_used);

/*
 * The group that is to serve a thread with a policy, or NULL. Whether the policy
 * means SCHED_DS: in a group where SCHED_FIFO does, it does without a budget as
 * well, or nothing would bound the thread any longer.
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
 * mt_decide - find out what is to serve a thread
 * @rq: its run queue, locked, as is its pi_lock
 * @p: the thread
 * @policy: its policy, perhaps a new one; SCHED_TT for a member of that class
 * @normal_prio: its priority by itself, likewise
 * @prio: filled in with its priority outside of servers; that of a member with
 *	what it is lent outside of its windows, MAX_PRIO for nothing
 *
 * The caller takes the thread to where it belongs then (mt_next_class()).
 * What the donors have may change meanwhile: their groups remain until a grace
 * period of RCU after this.
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
	/* Others of its group, too, would take it back to where it is kept. */
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

/* Whether claims are to be others, as was decided. */
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
 * mt_next_class - a thread gets the claims that were decided
 * @p: the thread; its run queue is locked, and it is about to be taken off that, if it is there
 * @class: its class otherwise
 *
 * Returns: its class.
 */
const struct sched_class *mt_next_class(struct task_struct *p, const struct sched_class *class)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	/* It puts its claims without a lock, or has done so. */
	if (unlikely(READ_ONCE(p->__state) == TASK_DEAD))
		return class;
	/* Who waits for a lock hands on what it lends: see macrotick_relays(). */
	if (unlikely(p->pi_blocked_on && mt_moves(p)))
		ds->relays = true;
	settle(p, &ds->own, ds->wanted_own, ds->own_prio);
	settle(p, &ds->lent, ds->wanted_lent, ds->lent_prio);
	settle_windows(p, p->macrotick.wanted_by);
	/* Whoever asks for its class without a decision must not find what is gone. */
	ds->wanted_own = ds->own.group;
	ds->wanted_lent = ds->lent.group;
	p->macrotick.wanted_by = p->macrotick.lent_by;
	if (mt_has_budget(ds->own.group, task_cpu(p)) && !ds->outside)
		return &macrotick_ds_sched_class;
	return class;
}

/*
 * Where its group has no budget a thread goes on under SCHED_OTHER, and where it
 * has one it is served by that alone.
 */
static void arrive(struct rq *rq, struct task_struct *p)
{
	bool wanted = mt_has_budget(p->macrotick.ds.own.group, cpu_of(rq)) &&
		!p->macrotick.ds.outside;
	const struct sched_class *before = p->sched_class;
	int oldprio = p->prio;

	if (likely(wanted == (before == &macrotick_ds_sched_class)))
		return;
	p->prio = wanted ? p->normal_prio : p->static_prio;
	p->sched_class = wanted ? &macrotick_ds_sched_class :
		__setscheduler_class(SCHED_NORMAL, p->prio);
	check_class_changing(rq, p, before);
	check_class_changed(rq, p, before, oldprio);
}

/**
 * __macrotick_arrive - a thread is about to be put on a run queue, perhaps of another CPU
 * @rq: the run queue, locked
 * @p: the thread, on none
 *
 * Hook of enqueue_task().
 */
void __macrotick_arrive(struct rq *rq, struct task_struct *p)
{
	if (p->macrotick.ds.own.group)
		arrive(rq, p);
}

/**
 * __macrotick_enqueued - a thread with claims or windows is on a run queue
 * @rq: the run queue, locked
 * @p: the thread
 * @head: before its equals
 *
 * Hook of enqueue_task().
 */
void __macrotick_enqueued(struct rq *rq, struct task_struct *p, bool head)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	/* It sleeps, and is only kept on the run queue by the fair class. */
	if (unlikely(p->se.sched_delayed))
		return;
	if (p->macrotick.entity || p->macrotick.lent_by)
		mt_enqueued(rq, p);
	if (ds->own.group) {
		mt_ds_link(rq, &ds->own, &ds->own.group->servers[cpu_of(rq)], head);
		mt_ds_wait(rq, p);
		if (unlikely(p->pi_blocked_on))
			mt_ds_note_offered(rq, p);
	}
	/* Deadline tasks have time of their own, and no place in any queue when that is used up. */
	if (unlikely(ds->lent.group) && !dl_prio(p->prio))
		mt_ds_link(rq, &ds->lent, &ds->lent.group->servers[cpu_of(rq)], head);
	if (ds->own.group || ds->lent.group)
		mt_ds_resched(rq);
}

/**
 * __macrotick_dequeue - a thread with claims or windows is taken off a run queue
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

/* What TimerShield goes by: the level of a server's priority. */
static int level_of_group(const struct mt_group *group)
{
	return TS_LEVEL_GROUP((int)READ_ONCE(group->priority));
}

/**
 * macrotick_level - how important a thread is that sleeps, for TimerShield
 * @p: the thread; interrupts are off
 *
 * One whose class or claims change has its level found anew.
 *
 * Return: the level of what may serve it, or TS_LEVEL_NORMAL.
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

/* The same of what a CPU runs on the time of a window or a server. */
int macrotick_running_level(unsigned int cpu)
{
	const struct macrotick_served *entity = READ_ONCE(per_cpu(mt_cpus, cpu).charged);
	const struct mt_server *server = READ_ONCE(per_cpu(mt_ds_cpus, cpu).charged);

	if (entity)
		return entity->pool ? TS_LEVEL_POOL : TS_LEVEL_WINDOW;
	return server ? TS_LEVEL_GROUP((int)READ_ONCE(server->priority)) : TS_LEVEL_NORMAL;
}

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

/* Its pi_lock is locked. */
void mt_redecide(struct task_struct *p)
{
	rt_mutex_setprio(p, task_has_pi_waiters(p) ? task_top_pi_waiter(p)->task : NULL);
}

/**
 * mt_refresh - a thread's group, or its group's budget, is another one
 * @p: the thread, unlocked
 */
void mt_refresh(struct task_struct *p)
{
	scoped_guard(raw_spinlock_irqsave, &p->pi_lock) {
		/* Nobody would drop the reference to its group. */
		if (READ_ONCE(p->__state) == TASK_DEAD)
			return;
		mt_redecide(p);
	}
	/* It may wait for a lock, in an order of priorities. */
	rt_mutex_adjust_pi(p);
}
