// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the scheduling class of SCHED_DS, between that of windows and
 * deadline. Which threads are in it, and whose budget they use, is decided in
 * ds_inherit.c; a thread stays where it is until it sleeps.
 */
#include "ds.h"

static struct mt_server *server_of(struct rq *rq, struct task_struct *p)
{
	return &p->macrotick.ds.group->servers[cpu_of(rq)];
}

static void enqueue_task_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
	if (unlikely(mt_keeps_its_place(flags)))
		return;
	mt_ds_link(rq, server_of(rq, p), p, flags & ENQUEUE_HEAD);
}

static bool dequeue_task_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
	mt_ds_account(rq);
	if (likely(!mt_keeps_its_place(flags)))
		mt_ds_unlink(rq, p);
	return true;
}

static void yield_task_macrotick_ds(struct rq *rq)
{
	mt_ds_requeue(rq->curr);
}

static void wakeup_preempt_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
	if (mt_ds_first(mt_ds_cpu_of(rq)) != rq->curr)
		resched_curr(rq);
}

static int balance_macrotick_ds(struct rq *rq, struct task_struct *prev, struct rq_flags *rf)
{
	return mt_ds_is_ready(mt_ds_cpu_of(rq));
}

/*
 * Who sleeps now may wait for a lock that somebody was offered who is less
 * important. Who is picked once more does not begin.
 */
static struct task_struct *pick_task_macrotick_ds(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct task_struct *first;

	if (unlikely(mt_ds_has_contenders(c) && rq->curr->pi_blocked_on))
		mt_ds_rank_again(rq);
	first = mt_ds_first(c);
	if (first == rq->curr && unlikely(c->foreseen))
		mt_ds_go_on(rq);
	return first;
}

static void put_prev_task_macrotick_ds(struct rq *rq, struct task_struct *p, struct task_struct *next)
{
	mt_ds_end(rq, p);
}

static void set_next_task_macrotick_ds(struct rq *rq, struct task_struct *p, bool first)
{
	mt_ds_begin(rq, p);
}

/* Where its group has a budget; of several CPUs, for a new thread, that with the fewest ready ones. */
static int select_task_rq_macrotick_ds(struct task_struct *p, int cpu, int flags)
{
	const struct mt_server *servers = p->macrotick.ds.group->servers;
	int i, best = -1;

	if (servers[cpu].budget && !(flags & WF_FORK) && cpumask_test_cpu(cpu, p->cpus_ptr))
		return cpu;
	for_each_cpu_and(i, p->cpus_ptr, cpu_active_mask) {
		if (servers[i].budget && (best < 0 || servers[i].nr_ready < servers[best].nr_ready))
			best = i;
	}
	return best < 0 ? cpu : best;
}

static void rq_offline_macrotick_ds(struct rq *rq)
{
	mt_ds_offline(rq);
}

static void task_tick_macrotick_ds(struct rq *rq, struct task_struct *p, int queued)
{
	mt_ds_account(rq);
}

/**
 * macrotick_group_priority - what TimerShield goes by
 * @p: a thread of the class; interrupts are off
 *
 * One that is on its way into the class or out of it has its level found anew.
 *
 * Return: the priority of the group that serves it, 1 to MT_GROUP_MAX_PRIO.
 */
unsigned int macrotick_group_priority(const struct task_struct *p)
{
	const struct mt_group *group = READ_ONCE(p->macrotick.ds.group);

	return group ? READ_ONCE(group->priority) : 1;
}

static void task_dead_macrotick_ds(struct task_struct *p)
{
	mt_ds_forget(p);
}

static void resched_if_not_first(struct rq *rq, struct task_struct *p)
{
	if (task_on_rq_queued(p) && mt_ds_first(mt_ds_cpu_of(rq)) != rq->curr)
		resched_curr(rq);
}

/* Nobody below has run meanwhile: whom it is to wait for there is not seen by the new class. */
static void switched_from_macrotick_ds(struct rq *rq, struct task_struct *p)
{
	if (task_current(rq, p))
		resched_curr(rq);
}

static void switched_to_macrotick_ds(struct rq *rq, struct task_struct *p)
{
	resched_if_not_first(rq, p);
}

static void prio_changed_macrotick_ds(struct rq *rq, struct task_struct *p, int oldprio)
{
	resched_if_not_first(rq, p);
}

static void update_curr_macrotick_ds(struct rq *rq)
{
	mt_ds_account(rq);
}

#ifdef CONFIG_SCHED_CORE
static int task_is_throttled_macrotick_ds(struct task_struct *p, int cpu)
{
	return !p->macrotick.ds.urgent && !p->macrotick.ds.group->servers[cpu].open;
}
#endif

/*
 * Omitted: migrate_task_rq, find_lock_rq, task_woken, rq_online (nobody is
 * pushed or pulled), task_fork (ds_group.c), reweight_task, get_rr_interval
 * (no weights, no slices), yield_to_task.
 */
DEFINE_SCHED_CLASS(macrotick_ds) = {
	.enqueue_task		= enqueue_task_macrotick_ds,
	.dequeue_task		= dequeue_task_macrotick_ds,
	.yield_task		= yield_task_macrotick_ds,

	.wakeup_preempt		= wakeup_preempt_macrotick_ds,

	.balance		= balance_macrotick_ds,
	.pick_task		= pick_task_macrotick_ds,
	.put_prev_task		= put_prev_task_macrotick_ds,
	.set_next_task		= set_next_task_macrotick_ds,

	.select_task_rq		= select_task_rq_macrotick_ds,
	.set_cpus_allowed	= set_cpus_allowed_common,
	.rq_offline		= rq_offline_macrotick_ds,

	.task_tick		= task_tick_macrotick_ds,
	.task_dead		= task_dead_macrotick_ds,

	.switched_from		= switched_from_macrotick_ds,
	.switched_to		= switched_to_macrotick_ds,
	.prio_changed		= prio_changed_macrotick_ds,

	.update_curr		= update_curr_macrotick_ds,
#ifdef CONFIG_SCHED_CORE
	.task_is_throttled	= task_is_throttled_macrotick_ds,
#endif
};
