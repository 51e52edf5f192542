// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the scheduling class of SCHED_DS, between that of windows and
 * deadline.
 *
 * The class picks any thread of the first open server (ds_order.c), whatever
 * its class. That is a thread of the group, or the owner of a lock that such a
 * thread waits for. The threads of the class itself are served by their group
 * only. They are queued as claims (claim.c), and thus there is nothing to do
 * here.
 */
#include "ds.h"

static void enqueue_task_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
}

static bool dequeue_task_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
	if (p == rq->curr)
		update_curr_common(rq);
	return true;
}

static void yield_task_macrotick_ds(struct rq *rq)
{
	mt_ds_requeue(&rq->curr->macrotick.ds.own);
}

/* mt_ds_resched() has looked at every claim when it was queued. */
static void wakeup_preempt_macrotick_ds(struct rq *rq, struct task_struct *p, int flags)
{
}

static int balance_macrotick_ds(MT_BALANCE_PARAMETERS)
{
	return mt_ds_is_ready(mt_ds_cpu_of(rq));
}

static struct task_struct *pick_task_macrotick_ds(MT_PICK_PARAMETERS)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct mt_claim *first = mt_ds_first(c, &c->picked);

	if (!first)
		return NULL;
	c->picked_task = first->task;
	return first->task;
}

static void put_prev_task_macrotick_ds(struct rq *rq, struct task_struct *p,
				       struct task_struct *next)
{
	update_curr_common(rq);
}

static void set_next_task_macrotick_ds(struct rq *rq, struct task_struct *p, bool first)
{
	p->se.exec_start = rq_clock_task(rq);
}

/*
 * Selects a CPU where the group has a budget. For a new thread, selects the CPU
 * with the fewest ready threads of the group.
 */
static int select_task_rq_macrotick_ds(struct task_struct *p, int cpu, int flags)
{
	const struct mt_server *servers = p->macrotick.ds.own.group->servers;
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
	update_curr_common(rq);
}

/*
 * No lower class has picked meanwhile: the new class does not know which
 * threads go before this one.
 */
static void switched_from_macrotick_ds(struct rq *rq, struct task_struct *p)
{
	if (task_current(rq, p))
		resched_curr(rq);
}

static void switched_to_macrotick_ds(struct rq *rq, struct task_struct *p)
{
	if (task_current(rq, p))
		resched_curr(rq);
}

static void prio_changed_macrotick_ds(struct rq *rq, struct task_struct *p, MT_OLD_PRIO oldprio)
{
	/* Its claims have been queued again. */
}

static void update_curr_macrotick_ds(struct rq *rq)
{
	update_curr_common(rq);
}

#ifdef CONFIG_SCHED_CORE
static int task_is_throttled_macrotick_ds(struct task_struct *p, int cpu)
{
	return !mt_ds_is_open(per_cpu_ptr(&mt_ds_cpus, cpu),
			      &p->macrotick.ds.own.group->servers[cpu]);
}
#endif

/*
 * Omitted callbacks:
 *
 *   - migrate_task_rq, find_lock_rq, task_woken, rq_online: no thread is pushed or
 *     pulled
 *   - task_fork, task_dead: see ds_group.c, claim.c
 *   - reweight_task, get_rr_interval: no weights, no slices
 *   - yield_to_task
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

	.switched_from		= switched_from_macrotick_ds,
	.switched_to		= switched_to_macrotick_ds,
	.prio_changed		= prio_changed_macrotick_ds,

	.update_curr		= update_curr_macrotick_ds,
#ifdef CONFIG_SCHED_CORE
	.task_is_throttled	= task_is_throttled_macrotick_ds,
#endif
};
