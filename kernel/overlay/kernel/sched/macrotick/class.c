// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the scheduling class, between stop and deadline.
 *
 * The class picks any thread of the open window's entity, whatever its class.
 * That is a ready thread of the entity, or the owner of a lock that such a
 * thread waits for. A thread of the class itself is served by windows only.
 * Outside of them, and while it waits for its next job, it stays on the run
 * queue. It does not count as runnable, like a throttled deadline task. The
 * file place.c decides the class and priority of a thread outside its windows.
 * The thread's place among the ready threads of its entity does not depend on
 * that. Time that the class does not use is left to lower classes.
 *
 * Two kinds of threads are served outside their windows, after the threads of
 * the open window:
 *
 *   - threads that their entity left behind on a CPU, until they may follow
 *     (migrate.c),
 *   - threads that were offered a lock, until they have taken it.
 *
 * They may not use that time to spin for a lock that another thread owns
 * (macrotick_contends()).
 */
#include "internal.h"

#include <trace/events/macrotick.h>

/*
 * A thread that must not migrate may do so soon, and its window is open on
 * another CPU. A hook reports the end of that state only if the thread was
 * preempted in it (macrotick_pins()). The timer polls the other threads.
 */
#define MT_PINNED_POLL_NS	(4 * NSEC_PER_USEC)
#define MT_PINNED_POLL_MAX_NS	(50 * NSEC_PER_USEC)

/*
 * Returns the thread that the class has a CPU run if no thread of the open
 * window is ready: see mt_first(). The caller knows that there is one.
 */
struct task_struct *mt_first_outside(const struct mt_cpu *c, struct macrotick_served **entity)
{
	struct task_struct *p;

	if (!list_empty(&c->pinned)) {
		p = list_first_entry(&c->pinned, struct task_struct, macrotick.ready);
		*entity = p->macrotick.entity;
		return p;
	}
	*entity = list_first_entry(&c->creditors, struct macrotick_served, credits);
	return list_first_entry(&(*entity)->contenders, struct task_struct, macrotick.contends);
}

/*
 * Updates whether an entity serves, outside its windows, threads that were
 * offered a lock. A pool has little time for that. Otherwise its threads could
 * get time without end by passing a lock to each other.
 */
void __mt_update_credit(struct rq *rq, struct macrotick_served *entity)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	bool serves = !list_empty(&entity->contenders) && c->served != entity &&
		(!entity->pool || entity->credit > 0);

	lockdep_assert_rq_held(rq);
	if (serves == !list_empty(&entity->credits))
		return;
	if (serves) {
		list_add_tail(&entity->credits, &c->creditors);
		add_nr_running(rq, 1);
	} else {
		list_del_init(&entity->credits);
		sub_nr_running(rq, 1);
	}
}

/*
 * Notes a queued thread that is blocked on a lock. It was offered the lock, or
 * is about to sleep. It may also wait for its next job. Only a thread without
 * another place outside its windows must be served there.
 */
void mt_note_contender(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	if (!m->queued || m->contending || p->sched_class != &macrotick_sched_class)
		return;
	WRITE_ONCE(m->contending, true);
	list_add_tail(&m->contends, &m->entity->contenders);
	__mt_update_credit(rq, m->entity);
}

void mt_forget_contender(struct rq *rq, struct task_struct *p)
{
	WRITE_ONCE(p->macrotick.contending, false);
	list_del(&p->macrotick.contends);
	__mt_update_credit(rq, p->macrotick.entity);
}

/* Links a queued thread on the CPU of its entity, if the thread is ready. */
void mt_link_home(struct rq *rq, struct task_struct *p)
{
	if (p->macrotick.state == MACROTICK_READY)
		mt_link_ready(rq, p);
}

/* Serves a queued thread that must not migrate, until it may. */
void mt_add_pinned(struct rq *rq, struct task_struct *p)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	u64 poll = ktime_get() + MT_PINNED_POLL_NS;

	if (p->macrotick.contending)
		mt_forget_contender(rq, p);
	if (p->macrotick.linked)
		mt_unlink_ready(rq, p);
	list_add_tail(&p->macrotick.ready, &c->pinned);
	WRITE_ONCE(p->macrotick.pinned, true);
	add_nr_running(rq, 1);
	c->poll_ns = MT_PINNED_POLL_NS;
	if (!c->nr_pinned++ || c->poll > poll)
		c->poll = poll;
	mt_kick(c);	/* to program the timer, in any context */
}

static void remove_pinned(struct rq *rq, struct task_struct *p)
{
	list_del(&p->macrotick.ready);
	WRITE_ONCE(p->macrotick.pinned, false);
	sub_nr_running(rq, 1);
	mt_cpu_of(rq)->nr_pinned--;
}

static void return_to_windows(struct rq *rq, struct task_struct *p)
{
	remove_pinned(rq, p);
	if (unlikely(p->macrotick.astray))
		mt_want_delivery(rq);
	else
		mt_link_home(rq, p);
}

/* The thread may migrate again: its service outside windows ends. Runs on the CPU of the thread. */
void mt_end_pinning(struct rq *rq, struct task_struct *p)
{
	if (mt_is_served(rq, p))
		return;
	return_to_windows(rq, p);
	mt_resched(rq, mt_cpu_of(rq));
}

/**
 * mt_look_at_pinned - ends the service of threads that may migrate again
 * @rq: this CPU's run queue, locked
 * @c: this CPU's position
 * @now: the instant
 */
void mt_look_at_pinned(struct rq *rq, struct mt_cpu *c, u64 now)
{
	struct task_struct *p, *next;

	list_for_each_entry_safe(p, next, &c->pinned, macrotick.ready) {
		if (!is_migration_disabled(p) || mt_is_served(rq, p))
			return_to_windows(rq, p);
	}
	c->poll_ns = min_t(u64, 2 * c->poll_ns, MT_PINNED_POLL_MAX_NS);
	c->poll = now + c->poll_ns;
	mt_resched(rq, c);
}

/* Links the owner of a lock that a thread of an entity on this CPU waits for. */
static void link_lent(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.lent_by;

	if (entity->cpu != cpu_of(rq) || dl_prio(p->prio))
		return;
	p->macrotick.lent_to = entity;
	list_add_tail(&p->macrotick.lends, &entity->lent);
	entity->nr_lent++;
	if (mt_cpu_of(rq)->served == entity)
		add_nr_running(rq, 1);
}

static void unlink_lent(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.lent_to;

	p->macrotick.lent_to = NULL;
	list_del(&p->macrotick.lends);
	entity->nr_lent--;
	if (mt_cpu_of(rq)->served == entity)
		sub_nr_running(rq, 1);
}

/**
 * mt_enqueued - links a thread that windows may serve when it is queued
 * @rq: the run queue, locked
 * @p: the thread, of any class
 */
void mt_enqueued(struct rq *rq, struct task_struct *p)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct macrotick_task *m = &p->macrotick;

	lockdep_assert_rq_held(rq);
	if (m->entity && mt_is_member(p)) {
		if (likely(!c->fetching))
			mt_advance(rq, ktime_get());
		if (mt_is_elsewhere(c, m->entity)) {
			mt_enqueue_astray(rq, p);
		} else {
			m->queued = true;
			mt_link_home(rq, p);
			if (unlikely(p->pi_blocked_on))
				mt_note_contender(rq, p);
		}
	}
	if (unlikely(m->lent_by))
		link_lent(rq, p);
	mt_resched(rq, c);
	/* A fetch runs in the timer itself, or programs the timer later. */
	if (likely(!c->fetching))
		mt_rearm(rq);
}

/**
 * mt_dequeue - unlinks such a thread when it is dequeued
 * @rq: the run queue, locked
 * @p: the thread
 */
void mt_dequeue(struct rq *rq, struct task_struct *p)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct macrotick_task *m = &p->macrotick;

	lockdep_assert_rq_held(rq);
	if (p == c->running) {
		mt_account(rq);
		c->running = NULL;
		c->charged = NULL;
	}
	if (unlikely(m->contending))
		mt_forget_contender(rq, p);
	m->queued = false;
	if (unlikely(m->astray))
		mt_dequeue_astray(p);
	if (unlikely(m->pinned))
		remove_pinned(rq, p);
	else if (m->linked)
		mt_unlink_ready(rq, p);
	if (unlikely(m->lent_to))
		unlink_lent(rq, p);
	mt_rearm(rq);
}

static void enqueue_task_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
}

static bool dequeue_task_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
	if (p == rq->curr)
		update_curr_common(rq);
	return true;
}

/* Reschedules: the thread must not go on here, because its entity is on another CPU. */
static void stop_astray(struct rq *rq, struct task_struct *p)
{
	if (unlikely(p->macrotick.astray))
		mt_resched(rq, mt_cpu_of(rq));
}

/* The part of mt_complete_job() that needs the entity's lock. */
static void complete_job(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	if (m->state == MACROTICK_WAITING)
		return;
	if (m->has_job) {
		m->has_job = false;
		m->entity->nr_jobs--;
		m->entity->completions++;
		mt_note_hold(p);
		mt_meet(p);
		trace_macrotick_complete(p, m->entity->name, m->job, m->nominal);
	} else if (!m->periodic) {
		m->periodic = true;
		if (!mt_is_open(m->entity))
			m->has_pending = false;
	}
	if (m->linked)
		mt_unlink_ready(rq, p);
	m->state = MACROTICK_WAITING;
	if (m->has_pending) {
		m->has_pending = false;
		m->state = MACROTICK_READY;
		m->has_job = true;
		m->began = true;
		m->missed = false;
		m->hold = false;
		m->entity->nr_jobs++;
		m->job = m->pending_job;
		m->nominal = m->pending_nominal;
		if (m->queued && !m->pinned)
			mt_link_ready(rq, p);
	}
}

/**
 * mt_complete_job - completes the job of a thread that waits for its next one
 * @rq: its run queue, locked
 * @p: the thread
 *
 * A pending activation begins at once. If it came before the first wait of the
 * thread, it only counts while the window that released it is open.
 */
void mt_complete_job(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;

	mt_lock_entity(entity);
	complete_job(rq, p);
	mt_unlock_entity(entity);
	stop_astray(rq, p);
	mt_rearm(rq);
}

/* The thread leaves the class: the kernel forgets its job, and its wait by sched_yield(2). */
void mt_leave(struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	mt_lock_entity(m->entity);
	if (m->has_job)
		m->entity->nr_jobs--;
	m->has_job = false;
	m->has_pending = false;
	m->hold = false;
	if (!m->in_wait)
		m->state = MACROTICK_READY;
	mt_unlock_entity(m->entity);
}

/* Ends the device's wait call without a job: the thread goes on in its windows. */
void mt_end_wait(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	mt_lock_entity(m->entity);
	m->in_wait = false;
	if (m->state == MACROTICK_WAITING) {
		m->state = MACROTICK_READY;
		if (m->queued && !m->linked && !m->pinned)
			mt_link_ready(rq, p);
	}
	mt_unlock_entity(m->entity);
	stop_astray(rq, p);
	mt_rearm(rq);
}

static void yield_task_macrotick(struct rq *rq)
{
	if (unlikely(rq->curr->macrotick.pooled)) {
		mt_pool_yield(rq->curr);
		return;
	}
	mt_complete_job(rq, rq->curr);
	rq->curr->macrotick.at_rest = true;
}

/* mt_enqueued() has rescheduled already for any thread that a window may serve. */
static void wakeup_preempt_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
}

static int balance_macrotick(MT_BALANCE_PARAMETERS)
{
	struct macrotick_served *entity;

	return mt_first(mt_cpu_of(rq), &entity) != NULL;
}

static struct task_struct *pick_task_macrotick(MT_PICK_PARAMETERS)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	c->picked = mt_first(c, &c->picked_for);
	return c->picked;
}

static void put_prev_task_macrotick(struct rq *rq, struct task_struct *p, struct task_struct *next)
{
	update_curr_common(rq);
}

static void set_next_task_macrotick(struct rq *rq, struct task_struct *p, bool first)
{
	p->se.exec_start = rq_clock_task(rq);
}

/**
 * mt_account - charges the running entity
 * @rq: the run queue, locked, its clock up to date
 */
void mt_account(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct macrotick_served *entity = c->charged;
	s64 delta = rq_clock_task(rq) - c->since;

	lockdep_assert_rq_held(rq);
	if (!entity || delta <= 0)
		return;
	c->since = rq_clock_task(rq);
	mt_lock_entity(entity);
	entity->runtime += delta;
	mt_unlock_entity(entity);
	if (unlikely(entity->slice))
		mt_pool_account(c->running, delta);
	if (unlikely(entity->pool && c->served != entity)) {
		entity->credit -= delta;
		mt_update_credit(rq, entity);
	}
}

/**
 * mt_run - charges the entity of the thread that a CPU is about to run
 * @rq: its run queue, locked, its clock up to date
 * @next: the thread. It may have run before, and be picked for another entity
 */
void mt_run(struct rq *rq, struct task_struct *next)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct task_struct *prev = rq->curr, *picked = c->picked == next ? next : NULL;

	c->picked = NULL;
	if (unlikely(prev->pi_blocked_on))
		mt_note_contender(rq, prev);
	if (unlikely(prev->macrotick.astray))
		mt_want_delivery(rq);
	if (picked == c->running && (!picked || c->picked_for == c->charged))
		return;
	if (c->charged)
		mt_account(rq);
	c->running = picked;
	c->charged = picked ? c->picked_for : NULL;
	c->since = rq_clock_task(rq);
	if (picked)
		picked->macrotick.began = true;
}

/* Hook of the tick: turns may end. */
void mt_tick(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (likely(!c->charged || !c->charged->slice))
		return;
	mt_account(rq);
	mt_pool_turn(c->charged);
	mt_resched(rq, c);
}

static int select_task_rq_macrotick(struct task_struct *p, int cpu, int flags)
{
	return p->macrotick.entity->roaming ? READ_ONCE(p->macrotick.entity->cpu) : task_cpu(p);
}

static void task_tick_macrotick(struct rq *rq, struct task_struct *p, int queued)
{
	update_curr_common(rq);
}

/*
 * No lower class has picked meanwhile: the new class does not know which
 * threads go before this one.
 */
static void switched_from_macrotick(struct rq *rq, struct task_struct *p)
{
	if (task_current(rq, p))
		resched_curr(rq);
}

static void switched_to_macrotick(struct rq *rq, struct task_struct *p)
{
	/* A deadline task may have lent it its parameters. In this class a thread has none. */
	p->dl.pi_se = &p->dl;
	if (task_on_rq_queued(p))
		resched_curr(rq);
}

static void prio_changed_macrotick(struct rq *rq, struct task_struct *p, MT_OLD_PRIO oldprio)
{
	/* There is one priority inside the class. */
}

static void update_curr_macrotick(struct rq *rq)
{
	update_curr_common(rq);
}

#ifdef CONFIG_SCHED_CORE
static int task_is_throttled_macrotick(struct task_struct *p, int cpu)
{
	if (p->macrotick.entity->roaming && READ_ONCE(p->macrotick.entity->cpu) != cpu)
		return true;
	return !p->macrotick.pinned && !(p->macrotick.linked && mt_is_served(cpu_rq(cpu), p));
}
#endif

/*
 * Omitted callbacks:
 *
 *   - migrate_task_rq, find_lock_rq, task_woken, rq_online, rq_offline: threads
 *     migrate with their windows only, and CPUs with windows do not go offline
 *   - task_fork, task_dead: member.c does it in process context
 *   - reweight_task, get_rr_interval: no weights, no slices
 *   - yield_to_task: a window is not handed on
 */
DEFINE_SCHED_CLASS(macrotick) = {
	.enqueue_task		= enqueue_task_macrotick,
	.dequeue_task		= dequeue_task_macrotick,
	.yield_task		= yield_task_macrotick,

	.wakeup_preempt		= wakeup_preempt_macrotick,

	.balance		= balance_macrotick,
	.pick_task		= pick_task_macrotick,
	.put_prev_task		= put_prev_task_macrotick,
	.set_next_task		= set_next_task_macrotick,

	.select_task_rq		= select_task_rq_macrotick,
	.set_cpus_allowed	= set_cpus_allowed_common,

	.task_tick		= task_tick_macrotick,

	.switched_from		= switched_from_macrotick,
	.switched_to		= switched_to_macrotick,
	.prio_changed		= prio_changed_macrotick,

	.update_curr		= update_curr_macrotick,
#ifdef CONFIG_SCHED_CORE
	.task_is_throttled	= task_is_throttled_macrotick,
#endif
};
