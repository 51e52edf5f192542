// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: threads that their group keeps inside the kernel.
 *
 * A thread that others of its group keep from running for ever, or whose group
 * has a tiny budget, may hold what everybody needs: read locks, which have no
 * priority inheritance, or a section of RCU. So who has been ready for long and
 * had hardly any time is relieved: it goes on under SCHED_NORMAL, on nobody's
 * account, until it returns to user mode, where it holds nothing. What it has by
 * that is what any thread may have that never was under SCHED_DS. It stays on
 * its CPU meanwhile (macrotick_stays()).
 *
 * Which threads are inside the kernel is not known. One that is not returns at
 * once, waits there for its turn, and does not count as waiting meanwhile.
 * Kernel threads never return, and are not relieved: who puts them into a group
 * knows what they do.
 *
 * Since when a thread waits is kept over changes of class, priority and CPU:
 * others of its group can make as many as they like. It counts from the last
 * sleep, or from the last look that found it well served.
 */
#include <linux/task_work.h>

#include "internal.h"
#include "ds.h"

/* Beyond a server period, which a used-up budget is waited for. */
#define MT_DS_STARVED_NS	(100 * NSEC_PER_MSEC)
/* Who has less than this part of the time does not run: 1.5 %. */
#define MT_DS_STARVED_PART	65
/* At so many threads at once, and how often. */
#define MT_DS_LOOKS		8
#define MT_DS_LOOK_NS		(10 * NSEC_PER_MSEC)

/*
 * On its way to user mode, or dying. It has to wait here if it is not its turn:
 * further on it may take locks again.
 */
static void end_relief(struct callback_head *work)
{
	struct task_struct *p = current;
	struct rq_flags rf;
	struct rq *rq;

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

/* Workers of io_uring look for such work between two pieces of theirs; those of vhost never do. */
static bool returns(const struct task_struct *p)
{
	return !(p->flags & (PF_KTHREAD | PF_USER_WORKER)) || p->flags & PF_IO_WORKER;
}

/* One that waits for a lock is in that lock's order: later, if it is still here. */
static bool may_be_relieved(const struct task_struct *p)
{
	return returns(p) && !p->pi_blocked_on && mt_ds_concerns(p);
}

/*
 * Its claim is taken from it where that may be done: by a thread of ours, as the
 * one that is found here does not get to run.
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
	/* If it fails the thread dies, and does not return any more. */
	task_work_add(p, &ds->end_relief, TWA_RESUME | TWAF_NO_ALLOC);
}

static void end_claim(struct kthread_work *work)
{
	struct mt_ds_cpu *c = container_of(work, struct mt_ds_cpu, relief);
	struct task_struct *p = READ_ONCE(c->relieving);

	/* Queued once more while it was being done. */
	if (!p)
		return;
	mt_refresh(p);
	put_task_struct(p);
	/* The next one may be found. */
	WRITE_ONCE(c->relieving, NULL);
}

/* A thread was found, and no run queue is locked. */
void mt_ds_relieve_found(struct mt_ds_cpu *c)
{
	if (unlikely(READ_ONCE(c->relieving)))
		mt_queue_work(&c->relief);
}

void __init mt_ds_relief_init(struct mt_ds_cpu *c)
{
	kthread_init_work(&c->relief, end_claim);
}

/* @p: it comes last then. Whether it is relieved. */
static bool look_at(struct rq *rq, struct task_struct *p, u64 now)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	u64 ran = p->se.sum_exec_runtime - ds->ran_then, since = now - ds->waits_since;

	list_move_tail(&ds->waits, &mt_ds_cpu_of(rq)->waiting);
	if (ran * MT_DS_STARVED_PART < since && since < MT_DS_STARVED_NS + mt_ds_period)
		return false;
	mt_ds_count_anew(p, now);
	if (ran * MT_DS_STARVED_PART >= since || ds->at_door || p == rq->curr ||
	    !may_be_relieved(p))
		return false;
	relieve(mt_ds_cpu_of(rq), p);
	return true;
}

/**
 * mt_ds_relieve - relieve who has waited for too long
 * @rq: this CPU's run queue, locked, its clock up to date
 *
 * Called after refills: others of the class run, or nobody would wait. The
 * caller has it done (mt_ds_relieve_found()) once it has unlocked the run queue.
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
