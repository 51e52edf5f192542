// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: class and priority of a thread of SCHED_TT outside its windows.
 *
 * Such a thread is normally frozen there, in a class that does not pick it. In
 * these cases it has a place outside its windows, which is a class and a
 * priority:
 *
 *   - It owns a lock, and a thread outside of windows and budgets waits for the
 *     lock. Then the owner runs in the class of the waiter and with its priority.
 *     A long critical section thus takes time only from threads that would have
 *     waited for it.
 *   - It has a fatal signal. Then it runs under SCHED_OTHER or, in a pool, under
 *     its own policy.
 *   - It is in a pool with slack, or a budget of its group serves it.
 *
 * A thread at rest has no place. It waits for its next job, and would only
 * check for it again and again.
 *
 * The place does not depend on the windows. The class picks the thread for an
 * open window before any place of the thread counts. The kernel decides the
 * place together with the priority (rt_mutex_setprio(),
 * __sched_setscheduler()). The begin and the end of a window do not look at it.
 *
 * Conversely, a thread of the class that waits for a lock lends the owner its
 * windows (claim.c). If the waiter cannot lend windows on the CPU of the owner,
 * it lends the priority MACROTICK_PRIO, which is that of SCHED_FIFO 99. An
 * owner that is under SCHED_TT itself gets MACROTICK_PRIO + 1, that of
 * SCHED_FIFO 98.
 */
#include <uapi/linux/sched/types.h>

#include "internal.h"

/*
 * Of the threads of SCHED_TT, only members of the class have MACROTICK_PRIO. A
 * donor with SCHED_FIFO 99 lends them the priority of SCHED_FIFO 98.
 */
static int without_membership(int prio)
{
	return prio == MACROTICK_PRIO ? MACROTICK_PRIO + 1 : prio;
}

/*
 * Records the priority that a pool's thread is lent, which it hands on when it
 * waits itself. A deadline task lends it MACROTICK_PRIO at most.
 */
static void note_lent(struct task_struct *p)
{
	struct task_struct *donor = rt_mutex_get_top_task(p);
	int prio = donor ? macrotick_lent_prio(donor) : MAX_PRIO;

	WRITE_ONCE(p->macrotick.lent, max(prio, MACROTICK_PRIO));
}

/* Decides the place of a pool's thread: its place without the pool, or frozen. */
static int place_pooled(struct rq *rq, struct task_struct *p, bool member)
{
	struct macrotick_task *m = &p->macrotick;
	int prio;

	note_lent(p);
	mt_weigh(p);
	mt_decide(rq, p, m->own_policy, mt_own_prio(p), &prio);
	if (!member || m->entity->slack || m->ds.outside)
		return without_membership(prio);
	return MACROTICK_PRIO;
}

static int place_member(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;
	int prio;

	mt_decide(rq, p, SCHED_TT, MACROTICK_PRIO, &prio);
	m->outside = prio < MAX_PRIO;
	if (unlikely(__fatal_signal_pending(p)))
		return without_membership(min(prio, p->static_prio));
	if (!m->outside || (m->state == MACROTICK_WAITING && m->at_rest))
		return MACROTICK_PRIO;
	return without_membership(prio);
}

/* Decides the place of a thread with the policy SCHED_TT. */
static int place(struct rq *rq, struct task_struct *p, bool member)
{
	int prio;

	if (p->macrotick.pooled)
		return place_pooled(rq, p, member);
	if (member)
		return place_member(rq, p);
	mt_decide(rq, p, SCHED_NORMAL, p->static_prio, &prio);
	return without_membership(prio);
}

/**
 * __macrotick_setprio - decides the priority after the waiters of a thread changed
 * @p: the thread; its run queue and its pi_lock are locked
 *
 * Hook of rt_mutex_setprio(). Returns: the priority.
 */
int __macrotick_setprio(struct task_struct *p)
{
	int prio;

	if (macrotick_policy(p->policy))
		return place(task_rq(p), p, mt_is_member(p));
	mt_decide(task_rq(p), p, p->policy, p->normal_prio, &prio);
	return prio;
}

/*
 * Returns the normal_prio that a thread without waiters will have after a
 * change of policy. Its own normal_prio is not changed yet.
 */
static int future_normal_prio(int policy, const struct sched_attr *attr)
{
	if (dl_policy(policy))
		return MAX_DL_PRIO - 1;
	if (rt_policy(policy))
		return MAX_RT_PRIO - 1 - attr->sched_priority;
	return NICE_TO_PRIO(attr->sched_nice);
}

/*
 * Hook of __sched_setscheduler(): the returned priority includes inheritance.
 * The table may start or stop during a change. The function therefore derives
 * class and normal priority from one look at the table. If they are out of date
 * afterwards, mt_follow() finds that.
 */
int __macrotick_setscheduler_prio(struct task_struct *p, int policy, const struct sched_attr *attr)
{
	bool member = macrotick_policy(policy) && mt_may_enter(p);
	int prio;

	if (!member && p->macrotick.entity)
		mt_leave(p);
	if (macrotick_policy(policy)) {
		p->normal_prio = mt_normal_prio(p, member);
		return place(task_rq(p), p, member);
	}
	mt_decide(task_rq(p), p, policy, future_normal_prio(policy, attr), &prio);
	return prio;
}
