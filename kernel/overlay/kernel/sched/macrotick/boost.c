// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: priority inheritance across the class.
 *
 * Upwards: a thread of the class that waits for a lock lends its owner
 * MACROTICK_PRIO, that of SCHED_FIFO 99.
 *
 * Downwards: a thread that loses its window while others wait for a lock
 * that it holds must not stay frozen until its next window. Outside its
 * windows it runs on behalf of its waiter, in the waiter's class and with
 * the waiter's priority, so that a long critical section takes time only
 * from those who would have waited for it. Inside its windows it is served
 * by them. It changes class
 *
 *   - when the waiter comes, goes or changes (rt_mutex_setprio()),
 *   - when a window of its entity opens or closes, or it begins to wait
 *     (mt_settle(), from an irq_work, because p->pi_lock comes before the run
 *     queue's lock).
 *
 * Offers: the owner of a lock hands it to the first waiter, who becomes the
 * owner when it runs. A thread of the class that is first outside its windows
 * is served until it has taken the lock (mt_add_urgent()), and is then an
 * owner like any other. There is no call at that moment, nor when a thread
 * loses its window while it spins for a lock, so that such threads are looked
 * at from time to time (mt_look_at_urgent()).
 *
 * On PREEMPT_RT this covers every spinlock, and readers of preemptible RCU
 * through RCU's own boosting.
 */
#include <uapi/linux/sched/types.h>

#include "internal.h"
#include "ds.h"

#include <trace/events/macrotick.h>

/*
 * A thread at rest is not helped by running: it would only look for its job
 * again and again. One on its way there may hold a lock of the kernel, and
 * its windows do not serve it before they release it.
 */
static bool belongs_inside(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	if (unlikely(m->pooled && m->doomed))
		return false;
	if (m->state == MACROTICK_WAITING)
		return m->at_rest;
	/* Once in the class it follows its entity. */
	return m->entity->roaming ? mt_is_open(m->entity) : mt_is_served(rq, p);
}

/* Nothing but membership yields MACROTICK_PRIO itself: a donor with SCHED_FIFO 99 lends 98. */
static int without_membership(int prio)
{
	return prio == MACROTICK_PRIO ? MACROTICK_PRIO + 1 : prio;
}

static int lent_by(struct task_struct *donor)
{
	return without_membership(macrotick_lent_prio(donor));
}

/* It hands that on if it waits itself. Of a deadline task it has no more than the place. */
static void note_lent(struct task_struct *p, struct task_struct *donor)
{
	int prio = donor ? macrotick_lent_prio(donor) : MAX_PRIO;

	WRITE_ONCE(p->macrotick.lent, max(prio, MACROTICK_PRIO));
}

/* A pool's thread, where it is what it would be without the pool. */
static int prio_outside(struct rq *rq, struct task_struct *p, struct task_struct *donor)
{
	int own = mt_own_prio(p), prio = donor ? min(lent_by(donor), own) : own;

	mt_weigh(p);
	if (!static_branch_unlikely(&macrotick_ds_used))
		return prio;
	mt_ds_decide(rq, p, p->macrotick.own_policy, own, donor, &prio);
	return without_membership(prio);
}

/*
 * A member outside its windows that somebody waits for. Nobody in a pool is to have time outside of budgets by
 * waiting for himself: what serves the waiter serves a pool's thread as well, and it is frozen while that does not.
 */
static int prio_lent(struct rq *rq, struct task_struct *p, struct task_struct *donor)
{
	int prio = lent_by(donor);

	if (static_branch_unlikely(&macrotick_ds_used) && p->macrotick.pooled)
		mt_ds_decide(rq, p, SCHED_TT, MACROTICK_PRIO, donor, &prio);
	else
		mt_ds_stay_out(p);
	return prio;
}

/* @prio is the lower (better) of the thread's normal priority and its donor's. */
static int effective_prio_of(struct rq *rq, struct task_struct *p, bool member,
			     struct task_struct *donor, int prio)
{
	bool inside = member && belongs_inside(rq, p);

	p->macrotick.changed = false;
	if (p->macrotick.pooled) {
		note_lent(p, donor);
		mt_note_budget(p);
	}
	if (p->macrotick.pooled && !inside && (!member || mt_goes_out(p)))
		return prio_outside(rq, p, donor);
	if (member && !inside && donor)
		return prio_lent(rq, p, donor);
	mt_ds_stay_out(p);
	return member ? MACROTICK_PRIO : without_membership(prio);
}

static void note_boost(struct task_struct *p, bool boosted)
{
	struct macrotick_task *m = &p->macrotick;

	if (!m->entity || m->boosted == boosted)
		return;
	m->boosted = boosted;
	mt_lock_entity(m->entity);
	m->entity->nr_boosted += boosted ? 1 : -1;
	mt_unlock_entity(m->entity);
	if (unlikely(m->entity->roaming))
		smp_mb();	/* before mt_is_open(); pairs with open_window() */
}

/* Hook of rt_mutex_setprio(), for threads with the policy SCHED_TT. */
int __macrotick_setprio(struct task_struct *p, struct task_struct *donor, int prio)
{
	note_boost(p, donor);
	return effective_prio_of(task_rq(p), p, mt_is_member(p), donor, prio);
}

/*
 * Hook of rt_mutex_setprio(), for a thread outside the class that becomes, or
 * no longer is, the owner of a lock that one of its threads may wait for: the
 * class picks it before deadline tasks, of which its own class does not know.
 */
void macrotick_owner_changed(struct task_struct *p)
{
	resched_curr(task_rq(p));
}

static bool is_under_ds(struct task_struct *p)
{
	return p->sched_class == &macrotick_ds_sched_class;
}

/* Such an owner wakes up, or whoever has as good a priority: those are not to be kept from being pushed elsewhere. */
void macrotick_owner_woken(struct task_struct *p)
{
	struct rq *rq = task_rq(p);

	if (rt_task(p) && (dl_task(rq->curr) || is_under_ds(rq->curr)) && mt_is_owner(p))
		resched_curr(rq);
}

/* What a change of policy makes of a thread that nobody waits for; its own normal_prio is the former one still. */
static int future_normal_prio(int policy, const struct sched_attr *attr)
{
	if (dl_policy(policy))
		return MAX_DL_PRIO - 1;
	if (rt_policy(policy))
		return MAX_RT_PRIO - 1 - attr->sched_priority;
	return NICE_TO_PRIO(attr->sched_nice);
}

/*
 * Hook of __sched_setscheduler(): @prio includes the inheritance already. The
 * table may start or stop in the middle of a change, so that class and normal
 * priority come of one look at it; mt_follow() finds what is out of date then.
 */
int macrotick_setscheduler_prio(struct task_struct *p, int policy, const struct sched_attr *attr, int prio)
{
	struct task_struct *donor = rt_mutex_get_top_task(p);
	struct macrotick_served *entity = p->macrotick.entity;
	bool member = macrotick_policy(policy) && mt_may_enter(p);

	p->macrotick.ds.wanted = NULL;
	if (macrotick_policy(policy))
		p->normal_prio = mt_normal_prio(p, member);
	else if (static_branch_unlikely(&macrotick_ds_used))
		mt_ds_decide(task_rq(p), p, policy, future_normal_prio(policy, attr), donor, &prio);
	if (!member) {
		if (entity)
			mt_leave(p);
		note_boost(p, donor && macrotick_policy(policy));
		return macrotick_policy(policy) ? effective_prio_of(task_rq(p), p, false, donor, prio) : prio;
	}
	note_boost(p, donor);
	return effective_prio_of(task_rq(p), p, true, donor, prio);
}

/*
 * A thread that is itself blocked on a lock is left alone: its priority is
 * part of that lock's order, and it does not run anyway. It is looked at
 * again when it is enqueued. That of a pool's thread is the same wherever it
 * is (macrotick_lent_prio()): it has its windows, and its place outside of
 * them, at once.
 */
static bool is_misplaced(struct task_struct *p)
{
	bool inside = p->sched_class == &macrotick_sched_class;

	if (unlikely(p->macrotick.changed))
		return true;
	if (!mt_is_member(p) || (p->pi_blocked_on && !p->macrotick.pooled))
		return false;
	if (unlikely(p->macrotick.entity->stopped))
		return true;
	if (belongs_inside(task_rq(p), p))
		return !inside;
	if (!inside || !p->macrotick.queued)
		return false;
	return mt_goes_out(p) || (mt_lends(p) && !p->pi_blocked_on);
}

/* The threads of a roaming entity may be on other CPUs than it is. */
static struct task_struct *find_misplaced_in(struct macrotick_served *entity)
{
	struct task_struct *p, *found = NULL;

	if (!entity->nr_boosted && !entity->nr_ready && likely(!entity->stopped))
		return NULL;
	mt_lock_entity(entity);
	list_for_each_entry(p, &entity->threads, macrotick.member) {
		if (is_misplaced(p)) {
			found = get_task_struct(p);
			break;
		}
	}
	mt_unlock_entity(entity);
	return found;
}

/*
 * A pool may have very many threads, and looking for those in the wrong place
 * must take no time from what the class serves meanwhile, except from its own
 * windows: it waits until the class has nothing to do. Each thread is looked
 * at once for each reason (mt_unsettle(), mt_unsettle_all()).
 */
static struct task_struct *find_misplaced_in_pool(struct rq *rq, struct macrotick_served *entity,
						  unsigned int *looks)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct task_struct *p;

	if (!entity->nr_unsettled)
		return NULL;
	if (c->served != entity && mt_first(c)) {
		c->slack = true;
		return NULL;
	}
	while (entity->nr_unsettled && *looks) {
		p = list_first_entry(&entity->threads, struct task_struct, macrotick.member);
		list_move_tail(&p->macrotick.member, &entity->threads);
		entity->nr_unsettled--;
		--*looks;
		if (is_misplaced(p))
			return get_task_struct(p);
	}
	if (entity->nr_unsettled)
		mt_want_settle(rq);
	return NULL;
}

static struct task_struct *find_misplaced(struct rq *rq, unsigned int *looks)
{
	struct macrotick_served *entity;
	struct task_struct *p = NULL;

	raw_spin_rq_lock(rq);
	list_for_each_entry(entity, &mt_cpu_of(rq)->entities, node) {
		if (unlikely(entity->pool))
			p = find_misplaced_in_pool(rq, entity, looks);
		else
			p = find_misplaced_in(entity);
		if (p)
			break;
	}
	raw_spin_rq_unlock(rq);
	return p;
}

/*
 * Like a thread whose table stopped. What it holds of the kernel's locks it
 * must be able to release: nothing serves it inside the class any longer.
 */
static void expel(struct task_struct *p)
{
	struct rq_flags rf;
	struct rq *rq = __task_rq_lock(p, &rf);

	/* Since it was found it may have left, or its entity goes on again. */
	if (mt_is_member(p) && p->macrotick.entity->stopped) {
		mt_leave(p);
		p->normal_prio = mt_normal_prio(p, false);
	}
	__task_rq_unlock(rq, &rf);
}

/* In one interrupt: the next window may have to wait for its end. */
#define MT_SETTLE_ROUNDS	2
#define MT_SETTLE_LOOKS		32

/**
 * mt_settle - move lock owners to the class they belong to now
 * @rq: this CPU's run queue, not locked; interrupts are off
 *
 * Every round changes the class of a thread for good, unless a window opens
 * or closes meanwhile, which happens on this CPU only, or for a roaming entity.
 * A pool may have many, and owners that are to stay, but each is looked at once
 * only: between some of them interrupts are let in.
 */
void mt_settle(struct rq *rq)
{
	struct task_struct *p;
	unsigned int rounds = MT_SETTLE_ROUNDS, looks = MT_SETTLE_LOOKS;

	while ((p = find_misplaced(rq, &looks))) {
		raw_spin_lock(&p->pi_lock);
		/* A requeue of PI futexes blocks a sleeping thread from elsewhere. */
		if (likely(!p->pi_blocked_on || p->macrotick.pooled)) {
			if (unlikely(p->macrotick.entity && p->macrotick.entity->stopped))
				expel(p);
			rt_mutex_setprio(p, task_has_pi_waiters(p) ? task_top_pi_waiter(p)->task : NULL);
		}
		raw_spin_unlock(&p->pi_lock);
		trace_macrotick_boost(p, p->prio);
		put_task_struct(p);
		if (!--rounds) {
			mt_want_settle(rq);
			return;
		}
	}
}
