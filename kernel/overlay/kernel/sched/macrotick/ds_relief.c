// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: threads that their group keeps inside the kernel.
 *
 * Other threads of a group can keep a thread from running for ever, or the
 * budget of the group can be tiny. Such a thread may hold something that the
 * whole host needs: a lock for reading, which has no priority inheritance, or
 * an RCU read-side section. Therefore the kernel relieves a thread that has
 * been ready for long and had hardly any time. The thread continues under
 * SCHED_NORMAL, charged to no group, until it returns to user mode, where it
 * holds nothing. It gets no more than any thread that was never under SCHED_DS.
 * It stays on its CPU meanwhile (macrotick_stays()).
 *
 * The kernel does not know which threads are inside the kernel. A thread in
 * user mode returns at once, waits there for its turn, and does not count as
 * waiting meanwhile. Kernel threads never return, and are not relieved: the
 * administrator that puts them into a group knows their work.
 *
 * A killed thread never returns to user mode either. If it has not ended after
 * MT_DS_STARVED_NS and a period, it is relieved until its end. Its used time
 * does not matter, because a switch to the thread counts as such. Otherwise
 * kill(2) would fail where a switch takes longer than the budget.
 *
 * The start of a wait survives changes of class, priority and CPU, because
 * other threads of the group can cause any number of them. The wait counts from
 * the last sleep, or from the last look that found enough time used.
 */
#include <linux/sched/signal.h>
#include <linux/task_work.h>

#include "internal.h"
#include "ds.h"

/* Beyond a server period, because threads wait that long for an exhausted budget. */
#define MT_DS_STARVED_NS	(100 * NSEC_PER_MSEC)
/* A thread with less than this part of the time counts as starved: 1.5 %. */
#define MT_DS_STARVED_PART	65
/* The number of threads to look at, and how often */
#define MT_DS_LOOKS		8
#define MT_DS_LOOK_NS		(10 * NSEC_PER_MSEC)

/* p->flags change only in p itself. A stale value delays the relief by one look. */
static bool is_dying(struct task_struct *p)
{
	return fatal_signal_pending(p) || p->flags & PF_EXITING;
}

/*
 * Ends the relief of a thread on its way to user mode. If it is not the
 * thread's turn, it must wait here. Later on the way it may take locks again.
 */
static void end_relief(struct callback_head *work)
{
	struct task_struct *p = current;
	struct rq_flags rf;
	struct rq *rq;

	if (is_dying(p))
		return;
	rq = task_rq_lock(p, &rf);
	WRITE_ONCE(p->macrotick.ds.relieved, false);
	p->macrotick.ds.at_door = true;
	mt_ds_count_anew(p, 0);
	task_rq_unlock(rq, p, &rf);
	mt_refresh(p);
	if (need_resched())
		schedule();
	WRITE_ONCE(p->macrotick.ds.at_door, false);
}

/*
 * Workers of io_uring run such work between two requests. Workers of vhost
 * never return to user mode.
 */
static bool returns(const struct task_struct *p)
{
	return !(p->flags & (PF_KTHREAD | PF_USER_WORKER)) || p->flags & PF_IO_WORKER;
}

/* A thread that waits for a lock is in the lock's order. It is relieved later, if needed. */
static bool may_be_relieved(const struct task_struct *p)
{
	return returns(p) && !p->pi_blocked_on && mt_ds_concerns(p);
}

/*
 * Marks a thread as relieved. The kernel thread of miss.c takes the claim away,
 * because it needs the pi_lock and the found thread does not run.
 */
static void relieve(struct mt_ds_cpu *c, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	if (c->relieving || ds->relieved)
		return;
	WRITE_ONCE(ds->relieved, true);
	ds->own.server->reliefs++;
	c->relieving = get_task_struct(p);
	init_task_work(&ds->end_relief, end_relief);
	/* If this fails, the thread exits and does not return to user mode. */
	task_work_add(p, &ds->end_relief, MT_TASK_WORK_NOTIFY);
}

static void end_claim(struct kthread_work *work)
{
	struct mt_ds_cpu *c = container_of(work, struct mt_ds_cpu, relief);
	struct task_struct *p = READ_ONCE(c->relieving);

	/* The work was queued again while it ran. */
	if (!p)
		return;
	mt_refresh(p);
	put_task_struct(p);
	/* From here on another thread may be found. */
	WRITE_ONCE(c->relieving, NULL);
}

/* Ends the claim of a thread that was found. No run queue is locked. */
void mt_ds_relieve_found(struct mt_ds_cpu *c)
{
	if (unlikely(READ_ONCE(c->relieving)))
		mt_queue_work(&c->relief);
}

void __init mt_ds_relief_init(struct mt_ds_cpu *c)
{
	kthread_init_work(&c->relief, end_claim);
}

/* Looks at a thread and moves it to the end. Returns whether it is relieved. */
static bool look_at(struct rq *rq, struct task_struct *p, u64 now)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	u64 ran = p->se.sum_exec_runtime - ds->ran_then, since = now - ds->waits_since;
	bool starves = ran * MT_DS_STARVED_PART < since, dies = is_dying(p);

	list_move_tail(&ds->waits, &mt_ds_cpu_of(rq)->waiting);
	if ((starves || dies) && since < MT_DS_STARVED_NS + mt_ds_period)
		return false;
	mt_ds_count_anew(p, now);
	if (!(dies || (starves && !ds->at_door)) || p == rq->curr || !may_be_relieved(p))
		return false;
	relieve(mt_ds_cpu_of(rq), p);
	return true;
}

/**
 * mt_ds_relieve - relieves a thread that has waited too long
 * @rq: this CPU's run queue, locked, its clock up to date
 *
 * Called after refills: a thread can only wait while others of the class run.
 * The caller completes the relief when it has unlocked the run queue
 * (mt_ds_relieve_found()).
 */
void mt_ds_relieve(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	unsigned int looks = MT_DS_LOOKS;
	struct task_struct *p, *last;
	u64 now = rq_clock(rq);

	if (!mt_ds_look_is_due(rq))
		return;
	c->next_look = now + MT_DS_LOOK_NS;
	last = list_last_entry(&c->waiting, struct task_struct, macrotick.ds.waits);
	do
		p = list_first_entry(&c->waiting, struct task_struct, macrotick.ds.waits);
	while (!look_at(rq, p, now) && p != last && --looks);
}
