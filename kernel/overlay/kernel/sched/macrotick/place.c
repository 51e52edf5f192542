// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: what a thread of SCHED_TT is outside of its windows.
 *
 * By itself it is nothing there: frozen, in a class that does not pick it. It
 * has a place outside of them, a class and a priority like any other thread,
 *
 *   - where somebody waits for a lock that it owns who is served by other things
 *     than windows and budgets: it runs on in the waiter's class and with its
 *     priority, so that a long critical section takes time only from those who
 *     would have waited for it,
 *   - with a fatal signal: then it is what it was before it was bound,
 *   - in a pool with slack, and where a budget of its group serves it.
 *
 * A thread at rest, which waits for its next job and would only look for it again
 * and again, has none.
 *
 * The place does not depend on whether a window is open: the thread is picked for
 * its window, if that is open, before any place of it counts. So it is decided
 * where priorities are (rt_mutex_setprio(), __sched_setscheduler()), and windows
 * begin and end without a look at it.
 *
 * The other way round a thread of the class that waits for a lock lends the owner
 * its windows (claim.c). To an owner on another CPU than those it lends
 * MACROTICK_PRIO + 1, that of SCHED_FIFO 98.
 */
#include <uapi/linux/sched/types.h>

#include "internal.h"

/* Nothing but membership yields MACROTICK_PRIO itself: a donor with SCHED_FIFO 99 lends 98. */
static int without_membership(int prio)
{
	return prio == MACROTICK_PRIO ? MACROTICK_PRIO + 1 : prio;
}

/* It hands that on if it waits itself. Of a deadline task it has no more than the place. */
static void note_lent(struct task_struct *p)
{
	struct task_struct *donor = rt_mutex_get_top_task(p);
	int prio = donor ? macrotick_lent_prio(donor) : MAX_PRIO;

	WRITE_ONCE(p->macrotick.lent, max(prio, MACROTICK_PRIO));
}

/* A pool's thread is what it would be without the pool, or frozen. */
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

/* Of a thread with the policy SCHED_TT. */
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
 * __macrotick_setprio - somebody else waits for a lock of a thread
 * @p: the thread; its run queue and its pi_lock are locked
 *
 * Hook of rt_mutex_setprio(). Returns: what its priority is.
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
 * What a change of policy makes of a thread that nobody waits for; its own
 * normal_prio is the former one still.
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
 * Hook of __sched_setscheduler(): @prio includes the inheritance already. The
 * table may start or stop in the middle of a change, so that class and normal
 * priority come of one look at it; mt_follow() finds what is out of date then.
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
