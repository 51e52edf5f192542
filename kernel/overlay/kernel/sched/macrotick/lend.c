// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the loans of threads that wait for locks.
 *
 * The first waiter of a lock lends the owner its windows and servers. A lock
 * without an owner is offered to its first waiter. Until this waiter has taken
 * the lock, it borrows like an owner.
 *
 * The server of the first waiter can be closed, or its windows can be over. A
 * waiter behind it may have an open server of a more important group, or another
 * class. Threads of one group could pass a lock from one to the next for ever
 * and keep all other threads from it. Waiters behind the first one therefore
 * lend, too. The code looks at the first few of them, and at the last one. The
 * last waiter has the lowest priority. If any waiter is under SCHED_OTHER, the
 * last one is. Waiters behind the first one lend an owner for one lock at a
 * time.
 *
 * A blocked owner hands on its loans. The rtmutex code
 * (rt_mutex_adjust_prio_chain()) tells the next owner in the chain, as it does
 * after a change of priority.
 */
#include "internal.h"
#include "ds.h"

/* The number of waiters of a thread, or of a lock, that the code looks at */
#define MT_DONORS_MAX	8

static void take_better(struct mt_loan *best, struct mt_group *group, int prio, int cpu)
{
	unsigned int priority;

	if (!mt_has_budget(group, cpu))
		return;
	if (group == best->own) {
		best->own_prio = min(best->own_prio, prio);
		return;
	}
	priority = READ_ONCE(group->priority);
	if (best->group && (priority < READ_ONCE(best->group->priority) ||
			    (priority == READ_ONCE(best->group->priority) && prio >= best->prio)))
		return;
	best->group = group;
	best->prio = prio;
}

/*
 * Whether a thread has windows that it can lend, on this CPU and no other one.
 * Windows of a pool cannot be lent, because pools are open to any program.
 */
static bool has_windows(struct task_struct *p, int cpu)
{
	struct macrotick_served *entity = READ_ONCE(p->macrotick.entity);

	return entity && !READ_ONCE(p->macrotick.pooled) && mt_is_member(p) &&
		!entity->roaming && entity->cpu == cpu;
}

/* Adds the windows and claims that a waiter lends on a CPU. */
static void take_from(struct mt_loan *best, struct task_struct *donor, int cpu)
{
	struct macrotick_ds *ds = &donor->macrotick.ds;
	struct macrotick_served *entity = READ_ONCE(donor->macrotick.lent_by);

	if (has_windows(donor, cpu))
		best->entity = READ_ONCE(donor->macrotick.entity);
	else if (unlikely(entity && entity->cpu == cpu))
		best->entity = entity;
	take_better(best, READ_ONCE(ds->own.group), READ_ONCE(ds->own.prio), cpu);
	take_better(best, READ_ONCE(ds->lent.group), READ_ONCE(ds->lent.prio), cpu);
}

/*
 * Returns the priority that the thread of a pool has outside the pool. A
 * priority of SCHED_DS counts only among the threads of its group.
 */
static int prio_from_pooled(struct task_struct *donor)
{
	bool means_ds;

	if (mt_serving_group(donor, READ_ONCE(donor->macrotick.own_policy), &means_ds))
		return MAX_PRIO;
	if (means_ds)
		return min_t(int, donor->static_prio, READ_ONCE(donor->macrotick.lent));
	return macrotick_lent_prio(donor);
}

/*
 * Returns the priority that a waiter lends on a CPU, besides windows and
 * claims. MAX_PRIO means none.
 */
static int prio_from(struct task_struct *donor, int cpu)
{
	if (donor->sched_class == &macrotick_ds_sched_class)
		return MAX_PRIO;
	if (unlikely(READ_ONCE(donor->macrotick.pooled)))
		return prio_from_pooled(donor);
	if (donor->sched_class == &macrotick_sched_class && has_windows(donor, cpu))
		return MAX_PRIO;
	return donor->prio;
}

/**
 * mt_borrow - finds what the waiters of a thread lend it
 * @p: the thread, its pi_lock locked
 * @cpu: the CPU of the thread
 * @best: filled in with claims and windows; the caller sets @best->own
 *
 * Returns: a priority outside of servers and windows; MAX_PRIO means none.
 */
int mt_borrow(struct task_struct *p, int cpu, struct mt_loan *best)
{
	struct mt_behind *behind = &p->macrotick.ds.behind;
	int n, prio = MAX_PRIO;
	struct rb_node *node = rb_first_cached(&p->pi_waiters);

	if (unlikely(behind->lock)) {
		take_better(best, behind->group, behind->prio, cpu);
		prio = behind->place;
	}
	for (n = 0; node && n < MT_DONORS_MAX; node = rb_next(node), n++) {
		struct task_struct *donor;

		donor = rb_entry(node, struct rt_mutex_waiter, pi_tree.entry)->task;
		take_from(best, donor, cpu);
		prio = min(prio, prio_from(donor, cpu));
	}
	return prio;
}

/**
 * mt_forget_behind - drops the loans of waiters behind the first one
 * @p: the owner of the lock, or the first waiter of a lock without an owner;
 *	its pi_lock is locked, or the thread is dead
 */
void mt_forget_behind(struct task_struct *p)
{
	struct mt_behind *behind = &p->macrotick.ds.behind;
	struct mt_group *group = behind->group;

	behind->lock = NULL;
	behind->group = NULL;
	if (group)
		mt_group_put(group);
}

/*
 * Finds what the waiters behind the first one lend. Returns: a priority outside
 * of servers, or MAX_PRIO.
 */
static int look_behind(struct rt_mutex_base *lock, int cpu, struct mt_loan *best)
{
	struct rb_node *first = rb_first_cached(&lock->waiters);
	struct rb_node *last = rb_last(&lock->waiters.rb_root);
	struct rb_node *node = first;
	int n = 0, prio = MAX_PRIO;

	if (first == last)
		return MAX_PRIO;
	while (node != last) {
		struct task_struct *donor;

		node = ++n < MT_DONORS_MAX ? rb_next(node) : last;
		donor = rb_entry(node, struct rt_mutex_waiter, tree.entry)->task;
		take_from(best, donor, cpu);
		prio = min(prio, prio_from(donor, cpu));
	}
	/* If the first waiter lends only its priority, that is at least as good as theirs. */
	return mt_lends_more(rb_entry(first, struct rt_mutex_waiter, tree.entry)->task) ?
		max(prio, 0) : MAX_PRIO;
}

/*
 * Records what the waiters behind the first one lend. Returns true if that
 * differs from the record before.
 */
static bool note_behind(struct rt_mutex_base *lock, struct task_struct *p)
{
	struct mt_behind *behind = &p->macrotick.ds.behind;
	struct mt_loan best = { .own = p->macrotick.ds.own.group };
	int place;

	lockdep_assert_held(&lock->wait_lock);
	lockdep_assert_held(&p->pi_lock);
	if (unlikely(behind->lock && behind->lock != lock))
		return false;
	place = look_behind(lock, task_cpu(p), &best);
	if (!behind->lock && !best.group && place == MAX_PRIO)
		return false;
	if (behind->lock && behind->group == best.group && behind->place == place &&
	    (!best.group || behind->prio == best.prio))
		return false;
	mt_forget_behind(p);
	if (best.group && !refcount_inc_not_zero(&best.group->ref))
		best.group = NULL;
	if (!best.group && place == MAX_PRIO)
		return true;
	behind->lock = lock;
	behind->group = best.group;
	behind->prio = best.prio;
	behind->place = place;
	return true;
}

/**
 * __macrotick_behind - a thread waits for a lock, or its priority there changed
 * @lock: the lock, its wait_lock locked
 * @owner: its owner; the pi_lock of the owner is locked
 *
 * Hook of the rtmutex code. Returns: true if the owner is blocked itself, and
 * its loan to the next owner changes.
 */
bool __macrotick_behind(struct rt_mutex_base *lock, struct task_struct *owner)
{
	if (likely(!note_behind(lock, owner)))
		return false;
	mt_redecide(owner);
	if (!owner->pi_blocked_on)
		return false;
	owner->macrotick.ds.relays = true;
	return true;
}

/**
 * __macrotick_left - a thread gave up waiting for a lock
 * @lock: the lock, its wait_lock locked
 * @owner: its owner
 *
 * Hook of remove_waiter(). If the owner is blocked too, the next owner in the
 * chain keeps its loan until something else changes.
 */
void __macrotick_left(struct rt_mutex_base *lock, struct task_struct *owner)
{
	guard(raw_spinlock)(&owner->pi_lock);
	if (owner->macrotick.ds.behind.lock == lock && note_behind(lock, owner))
		mt_redecide(owner);
}

/*
 * Ends the service of a thread that was offered a lock and is no longer
 * blocked. Returns true if the thread had such a service.
 */
static bool end_contending(struct task_struct *p)
{
	struct rq_flags rf;
	struct rq *rq;

	if (likely(!p->macrotick.ds.contends && !p->macrotick.contending))
		return false;
	rq = __task_rq_lock(p, &rf);
	if (p->macrotick.ds.contends) {
		mt_ds_forget_offered(rq, p);
		mt_ds_resched(rq);
	}
	if (p->macrotick.contending) {
		mt_forget_contender(rq, p);
		mt_resched(rq, mt_cpu_of(rq));
	}
	mt_task_rq_unlock(rq, p, &rf);
	return true;
}

/**
 * __macrotick_unblocked - a thread has given up the lock that it was blocked on
 * @lock: the lock, its wait_lock locked
 * @p: the thread, its pi_lock locked
 *
 * Hook of remove_waiter(). While the lock was only offered, the other waiters
 * have boosted no thread.
 */
void __macrotick_unblocked(struct rt_mutex_base *lock, struct task_struct *p)
{
	end_contending(p);
	if (p->macrotick.ds.behind.lock == lock)
		mt_forget_behind(p);
	mt_redecide(p);
}

/**
 * __macrotick_takes - a thread takes a lock
 * @lock: the lock, its wait_lock locked
 * @p: the thread, its pi_lock locked
 *
 * Hook of the rtmutex code, where that adjusts no priority. Other threads still
 * wait for the lock, or it was offered to the thread.
 */
void __macrotick_takes(struct rt_mutex_base *lock, struct task_struct *p)
{
	bool changes = end_contending(p);

	changes |= note_behind(lock, p);
	if (changes || (task_has_pi_waiters(p) &&
			(mt_lends_more(p) || mt_lends_more(task_top_pi_waiter(p)->task))))
		mt_redecide(p);
}

/**
 * __macrotick_offered - other threads wait for a lock that was offered
 * @lock: the lock, without an owner, its wait_lock locked
 *
 * Until the first waiter has taken the lock, it borrows like an owner.
 */
void __macrotick_offered(struct rt_mutex_base *lock)
{
	struct rb_node *node = rb_first_cached(&lock->waiters);
	struct task_struct *first;

	if (!node || !rb_next(node))
		return;
	first = rb_entry(node, struct rt_mutex_waiter, tree.entry)->task;
	guard(raw_spinlock)(&first->pi_lock);
	if (note_behind(lock, first))
		mt_redecide(first);
}
