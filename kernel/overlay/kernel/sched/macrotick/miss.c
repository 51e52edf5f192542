// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: misses.
 *
 * The kernel finds a miss at the end of a window, in an interrupt with the run
 * queue locked. Signals and eventfds need sleeping locks on PREEMPT_RT. The
 * kernel thread "macrotick" sends them. It also finishes a swap, and takes the
 * threads of stopped entities out of the class.
 */
#include <linux/eventfd.h>
#include <linux/kthread.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>

#include "internal.h"

#include <trace/events/macrotick.h>

static struct kthread_worker *mt_worker;
static struct eventfd_ctx *notify_all;	/* under mt_control */

/* The thread with a missed job gets a signal. */
#define MT_TELLING	(MACROTICK_ENTITY_MISS_SIGNAL | MACROTICK_ENTITY_MISS_KILL)

/*
 * Marks jobs as missed. Sets @never_ran if one of them never had the CPU. A job
 * from before a swap has no deadline in this table.
 */
static bool mark_missed(struct mt_cpu *c, const struct mt_window *w, bool *never_ran)
{
	struct task_struct *p;
	bool any = false;

	mt_lock_entity(w->entity);
	list_for_each_entry(p, &w->entity->threads, macrotick.member) {
		struct macrotick_task *m = &p->macrotick;

		if (!m->has_job || m->nominal < c->table->epoch)
			continue;
		any = true;
		m->missed = true;
		m->to_tell = w->slot->flags & MT_TELLING;
		*never_ran |= !m->began;
	}
	mt_unlock_entity(w->entity);
	return any;
}

/**
 * mt_check_deadline - handles the end of a window with DEADLINE while a job is incomplete
 * @c: the CPU's position, under its run queue's lock
 * @w: the window, open or passed over
 * @end: the end of the window
 */
void mt_check_deadline(struct mt_cpu *c, const struct mt_window *w, u64 end)
{
	struct macrotick_served *entity = w->entity;
	const struct mt_slot *slot = w->slot;
	bool never_ran = false;

	if (!mark_missed(c, w, &never_ran))
		return;
	entity->misses++;
	entity->misses_in_row++;
	entity->never_ran += never_ran;
	entity->kills = slot->flags & MACROTICK_ENTITY_MISS_KILL;
	if (slot->max_misses && entity->misses_in_row >= slot->max_misses)
		mt_stop_entity(c, entity);
	trace_macrotick_miss(entity->name, c->cpu, end);
	if (!(slot->flags & MT_TELLING) && !READ_ONCE(entity->notify) && !READ_ONCE(notify_all))
		return;
	WRITE_ONCE(entity->missed, true);
	c->tell = true;
}

/* A job is complete. The row of misses ends if no job is open, and this one was in time. */
void mt_meet(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;

	if (!p->macrotick.missed && !entity->nr_jobs)
		entity->misses_in_row = 0;
}

/* Stops an entity. Its threads leave the class in tell(). */
void mt_stop_entity(struct mt_cpu *c, struct macrotick_served *entity)
{
	entity->stopped = true;
	WRITE_ONCE(entity->expels, true);
	c->tell = true;
}

/*
 * Restarts a stopped entity when a thread is bound. The entity goes on with its
 * next window. Its threads enter the class again in mt_follow().
 */
void mt_restart(struct macrotick_served *entity)
{
	if (likely(!entity->stopped))
		return;
	entity->misses_in_row = 0;
	if (entity->roaming)
		mt_rejoin(entity, ktime_get());
	WRITE_ONCE(entity->stopped, false);
}

static bool take_to_tell(struct task_struct *p)
{
	return xchg(&p->macrotick.to_tell, false);
}

static void tell_threads(struct macrotick_served *entity)
{
	bool kill = READ_ONCE(entity->kills);
	struct task_struct *p;

	while ((p = mt_find_member(entity, take_to_tell))) {
		do_send_sig_info(kill ? SIGKILL : SIGXCPU, SEND_SIG_PRIV, p,
				 kill ? PIDTYPE_TGID : PIDTYPE_PID);
		put_task_struct(p);
	}
}

static void tell_table(void)
{
	struct macrotick_served *entity;
	bool any = false;
	unsigned int i;

	for (i = 0; mt_table && i < mt_table->nr_entities; i++) {
		entity = mt_table->slots[i].entity;
		if (READ_ONCE(entity->expels)) {
			WRITE_ONCE(entity->expels, false);
			mt_follow(entity);
		}
		if (!READ_ONCE(entity->missed))
			continue;
		WRITE_ONCE(entity->missed, false);
		any = true;
		tell_threads(entity);
		if (entity->notify)
			eventfd_signal(entity->notify);
	}
	if (any && notify_all)
		eventfd_signal(notify_all);
}

/*
 * Reports misses and finishes a swap. Entities that the swap removes also get
 * their last reports.
 */
static void tell(struct kthread_work *work)
{
	guard(mt_control)(&mt_control);
	tell_table();
	if (mt_finish_swap())
		tell_table();
}

static DEFINE_KTHREAD_WORK(mt_tell_work, tell);

/* Queues work that an interrupt must not do. Called from an interrupt, with no run queue locked. */
void mt_queue_work(struct kthread_work *work)
{
	if (mt_worker)
		kthread_queue_work(mt_worker, work);
}

void mt_tell(void)
{
	mt_queue_work(&mt_tell_work);
}

static struct eventfd_ctx **notify_slot(u32 entity)
{
	if (!mt_table)
		return NULL;
	if (entity == MACROTICK_ALL_ENTITIES)
		return &notify_all;
	if (entity >= mt_table->nr_entities)
		return NULL;
	return &mt_table->slots[array_index_nospec(entity, mt_table->nr_entities)].entity->notify;
}

void mt_put_notify(struct eventfd_ctx *notify)
{
	if (notify)
		eventfd_ctx_put(notify);
}

/**
 * mt_notify - sets an eventfd for misses
 * @arg: the request
 *
 * Return: 0, -ENOENT (no table, or no such entity), -EBADF or -EINVAL (not an
 * eventfd).
 */
int mt_notify(struct macrotick_notify *arg)
{
	struct eventfd_ctx *notify = NULL, **slot;

	if (arg->eventfd != -1)
		notify = eventfd_ctx_fdget(arg->eventfd);
	if (IS_ERR(notify))
		return PTR_ERR(notify);
	mt_begin_control();
	scoped_guard(mt_control, &mt_control) {
		slot = notify_slot(arg->entity);
		if (slot)
			swap(*slot, notify);
	}
	mt_end_control();
	mt_put_notify(notify);
	return slot ? 0 : -ENOENT;
}

/* The table is removed, under mt_control. The entities' own eventfds go with the entities. */
void mt_forget_notify_all(void)
{
	mt_put_notify(notify_all);
	notify_all = NULL;
}

static int __init mt_miss_init(void)
{
	struct kthread_worker *worker = kthread_create_worker(0, "macrotick");

	if (IS_ERR(worker))
		return PTR_ERR(worker);
	sched_set_fifo(worker->task);
	mt_worker = worker;
	return 0;
}
core_initcall(mt_miss_init);
