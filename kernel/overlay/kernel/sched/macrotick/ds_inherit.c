// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: whose budget serves a thread.
 *
 * A thread under SCHED_DS is served by its group's. If it waits for a lock it
 * lends the owner its priority, and its group: whatever policy the owner has,
 * it runs on the budget of the waiter's group, if that is the more important
 * one, and is charged to it. So nobody gets time outside of budgets by having
 * his own threads wait for each other.
 *
 * A closed server lends nothing. An owner that has nothing but closed servers
 * is
 *   - what it is by itself, if it is not under SCHED_DS,
 *   - what a waiter makes it that is in no group: in the waiter's class and with
 *     its priority, charged to nobody. Whoever waits pays for it,
 *   - frozen until a refill if those who wait are, too.
 * All that changes when a server closes or opens: owners of locks are watched,
 * and decided anew by an irq_work then (p->pi_lock comes before the run
 * queue's lock). So is a stray: a thread that has come to a CPU where its group
 * has no budget at all, or whose group lost it. No refill would ever serve it.
 *
 * A thread in a pool is served by its windows, and outside of them as if it was
 * not in the pool.
 *
 * An owner that a thread of SCHED_TT or SCHED_DEADLINE waits for is theirs.
 *
 * Who is relieved (ds_relief.c) has no group of its own meanwhile.
 */
#include "internal.h"
#include "ds.h"

/* All lists of watched threads; inside the run queues' locks. */
static DEFINE_RAW_SPINLOCK(mt_ds_watch_lock);

/* In one interrupt. */
#define MT_DS_SETTLE_MAX	16

static void watch(struct mt_ds_cpu *c, struct task_struct *p, bool wanted)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	if (likely(!ds->is_watched && !wanted))
		return;
	guard(raw_spinlock)(&mt_ds_watch_lock);
	if (ds->is_watched)
		list_del(&ds->watched);
	if (wanted)
		list_add_tail(&ds->watched, &c->watched);
	ds->is_watched = wanted;
	ds->stray = false;
}

/**
 * mt_ds_watch_here - a thread is watched on the CPU that it has come to
 * @c: the CPU's servers, under its run queue's lock
 * @p: the thread
 * @stray: it must be decided anew, by the CPU's irq_work
 */
void mt_ds_watch_here(struct mt_ds_cpu *c, struct task_struct *p, bool stray)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	guard(raw_spinlock)(&mt_ds_watch_lock);
	if (ds->is_watched)
		list_del(&ds->watched);
	ds->is_watched = true;
	ds->stray = stray;
	if (stray)
		list_add(&ds->watched, &c->watched);
	else
		list_add_tail(&ds->watched, &c->watched);
}

static bool is_open(const struct mt_group *group, int cpu)
{
	return group && group->servers[cpu].open;
}

/* A waiter of the class of windows, where its lender runs ahead of everything. */
static bool waits_in_window(struct task_struct *donor)
{
	return macrotick_policy(donor->policy) && macrotick_lent_prio(donor) == MACROTICK_PRIO;
}

/*
 * What a waiter lends whose group has no budget. In a pool it has the priority of SCHED_DS that it was given even so:
 * that counts among its group's only.
 */
static int prio_of_waiter(struct task_struct *donor)
{
	if (likely(!READ_ONCE(donor->macrotick.pooled)) || READ_ONCE(donor->macrotick.own_policy) != SCHED_DS)
		return macrotick_lent_prio(donor);
	return min_t(int, donor->static_prio, READ_ONCE(donor->macrotick.lent));
}

/* Of an owner that no group is to serve. By itself one of SCHED_TT is frozen. */
static int prio_beside_groups(int policy, int normal_prio, int lent)
{
	return macrotick_policy(policy) ? max(lent, MACROTICK_PRIO + 1) : min(normal_prio, lent);
}

/* @policy: SCHED_DS for whatever means that. */
static struct mt_group *choose(struct task_struct *p, int policy, int normal_prio, struct mt_group *own,
			       struct mt_group *lent, struct task_struct *donor, int cpu, int *prio)
{
	bool lends = is_open(lent, cpu);

	if (dl_prio(*prio) || (donor && waits_in_window(donor)))
		return NULL;
	if (is_open(own, cpu) && !(lends && lent->priority > own->priority))
		return own;
	if (lends)
		return lent;
	if (own && (!donor || lent))
		return own;
	if (own)
		*prio = prio_of_waiter(donor);
	else if (policy == SCHED_DS)
		*prio = donor && !lent ? min(p->static_prio, prio_of_waiter(donor)) : p->static_prio;
	else if (lent)
		*prio = normal_prio;
	else if (donor)
		*prio = prio_beside_groups(policy, normal_prio, prio_of_waiter(donor));
	return NULL;
}

/* What a group has a budget on a CPU for. */
static struct mt_group *with_budget(struct mt_group *group, int cpu)
{
	return group && group->servers[cpu].budget ? group : NULL;
}

/* The group that is to serve a thread with a policy, or NULL. */
static struct mt_group *serving_group(struct task_struct *p, int policy)
{
	struct mt_group *group = rt_policy(policy) ? mt_ds_group_of(p) : NULL;

	return group && (policy == SCHED_DS || READ_ONCE(group->takes_fifo)) ? group : NULL;
}

/* A pool's thread that waits inside the class lends what serves it outside, with the priority that it has there. */
static struct mt_group *group_of_waiter(struct task_struct *donor)
{
	struct mt_group *group = READ_ONCE(donor->macrotick.ds.group);

	if (group || likely(!READ_ONCE(donor->macrotick.pooled)))
		return group;
	return serving_group(donor, READ_ONCE(donor->macrotick.own_policy));
}

/**
 * mt_ds_decide - find out what is to serve a thread
 * @rq: its run queue, locked, as is its pi_lock
 * @p: the thread
 * @policy: its policy, perhaps a new one; SCHED_TT if it is frozen without a donor
 * @normal_prio: its priority without a donor, likewise
 * @donor: who waits for a lock of it, or NULL
 * @prio: its effective priority; changed where the donor's does not count, or
 *	its own does not
 *
 * The caller takes the thread to where it belongs then (mt_ds_next_class()).
 * What the donor has may change meanwhile: its group remains until a grace
 * period of RCU after this.
 */
void mt_ds_decide(struct rq *rq, struct task_struct *p, int policy, int normal_prio, struct task_struct *donor,
		  int *prio)
{
	int cpu = cpu_of(rq);
	struct mt_group *group = serving_group(p, policy), *own = with_budget(group, cpu);
	struct mt_group *lent = donor ? with_budget(group_of_waiter(donor), cpu) : NULL;

	if (unlikely(p->macrotick.ds.relieved)) {
		/* Its own group's threads would take it back to where it is kept. */
		if (lent && lent == own) {
			lent = NULL;
			donor = NULL;
		}
		own = NULL;
	}

	watch(mt_ds_cpu_of(rq), p, donor && (own || lent));
	p->macrotick.ds.wanted = choose(p, group ? SCHED_DS : policy, normal_prio, own, lent, donor, cpu, prio);
}

/**
 * mt_ds_next_class - a thread goes to what was decided
 * @p: the thread; its run queue is locked
 * @class: its class otherwise
 *
 * Returns: its class.
 */
const struct sched_class *mt_ds_next_class(struct task_struct *p, const struct sched_class *class)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	struct mt_group *before = ds->group;

	/* It forgets its group without a lock, or has done so; where its class says so. */
	if (unlikely(READ_ONCE(p->__state) == TASK_DEAD))
		return p->sched_class;
	if (ds->wanted != before) {
		if (ds->wanted && !refcount_inc_not_zero(&ds->wanted->ref))
			ds->wanted = NULL;
		WRITE_ONCE(ds->group, ds->wanted);
		if (before)
			mt_group_put(before);
		/* Within the class nobody else compares another group with what runs. */
		if (before && ds->group)
			resched_curr(task_rq(p));
	}
	return ds->group ? &macrotick_ds_sched_class : class;
}

/**
 * macrotick_ds_setprio - somebody else waits for a lock of a thread, or a server has closed or opened
 * @p: the thread, not under SCHED_TT; its run queue and its pi_lock are locked
 * @donor: the first of those who wait, or NULL
 * @prio: what the thread's priority would be
 *
 * Hook of rt_mutex_setprio(). Returns: what its priority is.
 */
int macrotick_ds_setprio(struct task_struct *p, struct task_struct *donor, int prio)
{
	mt_ds_decide(task_rq(p), p, p->policy, p->normal_prio, donor, &prio);
	return prio;
}

/**
 * mt_ds_stay_out - what serves a thread is not its group
 * @p: the thread; its run queue is locked
 */
void mt_ds_stay_out(struct task_struct *p)
{
	watch(NULL, p, false);
	p->macrotick.ds.wanted = NULL;
}

/* Whether a budget serves a pool's thread outside its windows. Under its run queue's lock or p->pi_lock. */
bool mt_ds_has_budget(struct task_struct *p)
{
	return with_budget(serving_group(p, p->macrotick.own_policy), task_cpu(p));
}

/* A thread is dead. */
void mt_ds_forget(struct task_struct *p)
{
	struct mt_group *group = p->macrotick.ds.group;

	scoped_guard(irqsave)
		watch(NULL, p, false);
	p->macrotick.ds.group = NULL;
	p->macrotick.ds.wanted = NULL;
	if (group)
		mt_group_put(group);
}

static void decide_again(struct task_struct *p)
{
	rt_mutex_setprio(p, task_has_pi_waiters(p) ? task_top_pi_waiter(p)->task : NULL);
}

/**
 * mt_ds_refresh - a thread's group, or its group's budget, is another one
 * @p: the thread, unlocked
 */
void mt_ds_refresh(struct task_struct *p)
{
	scoped_guard(raw_spinlock_irqsave, &p->pi_lock) {
		/* Nobody would drop the reference to its group. */
		if (READ_ONCE(p->__state) == TASK_DEAD)
			return;
		decide_again(p);
	}
	/* It may wait for a lock, in an order of priorities. */
	rt_mutex_adjust_pi(p);
}

static struct task_struct *next_watched(struct mt_ds_cpu *c)
{
	struct task_struct *p;

	guard(raw_spinlock)(&mt_ds_watch_lock);
	p = list_first_entry_or_null(&c->watched, struct task_struct, macrotick.ds.watched);
	if (!p)
		return NULL;
	p->macrotick.ds.stray = false;
	list_move_tail(&p->macrotick.ds.watched, &c->watched);
	return get_task_struct(p);
}

static unsigned int count_watched(struct mt_ds_cpu *c)
{
	struct list_head *at;
	unsigned int n = 0;

	guard(raw_spinlock)(&mt_ds_watch_lock);
	list_for_each(at, &c->watched) {
		if (++n == MT_DS_SETTLE_MAX)
			break;
	}
	return n;
}

static bool has_strays(struct mt_ds_cpu *c)
{
	struct task_struct *p;

	guard(raw_spinlock)(&mt_ds_watch_lock);
	p = list_first_entry_or_null(&c->watched, struct task_struct, macrotick.ds.watched);
	return p && p->macrotick.ds.stray;
}

/**
 * mt_ds_settle - servers have closed or opened: decide anew for owners of locks
 * @rq: this CPU's run queue, not locked; interrupts are off
 *
 * Return: whether strays are left.
 */
bool mt_ds_settle(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct task_struct *p;
	unsigned int n;

	/* On its way off line it pushes everybody away from inside of rt_mutex_setprio(), and no server closes. */
	if (unlikely(!cpu_active(cpu_of(rq))))
		return false;
	for (n = mt_ds_watches(c) ? count_watched(c) : 0; n && (p = next_watched(c)); n--) {
		raw_spin_lock(&p->pi_lock);
		/* The priority of one that waits itself is part of that lock's order; it does not run anyway. */
		if (!p->pi_blocked_on && READ_ONCE(p->__state) != TASK_DEAD)
			decide_again(p);
		raw_spin_unlock(&p->pi_lock);
		put_task_struct(p);
	}
	return mt_ds_watches(c) && has_strays(c);
}
