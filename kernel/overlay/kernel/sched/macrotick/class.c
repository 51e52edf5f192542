// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the scheduling class, between stop and deadline.
 *
 * A thread of the class that has no open window, or that waits for its next
 * job, stays on the run queue and does not count as runnable, like a
 * throttled deadline task. Time that the class does not use falls through.
 *
 * Three kinds of threads are served outside their windows, after the threads of
 * the open one: those with a fatal signal, but for a pool's, until they leave
 * the class in macrotick_exit_task() right at the beginning of their exit,
 * those that were offered a lock, until they have taken it (boost.c), and those
 * that their entity left behind on a CPU, until they may follow (migrate.c).
 * None may use that time to spin for a lock that somebody else owns: they are
 * parked.
 */
#include "internal.h"

#include <trace/events/macrotick.h>

/*
 * How long an urgent thread goes on before it is looked at, and how often it
 * is looked at then: less and less often, as others pay for it.
 */
#define MT_URGENT_POLL_NS	(50 * NSEC_PER_USEC)
#define MT_URGENT_POLL_MAX_NS	NSEC_PER_MSEC

/*
 * A thread that must not migrate for now may do so soon, and its window is open
 * elsewhere. Only where it was preempted meanwhile there is a call when it may
 * (macrotick_pins()): others are looked at more often.
 */
#define MT_PINNED_POLL_NS	(4 * NSEC_PER_USEC)

/* Serves a queued thread outside its windows. */
void mt_add_urgent(struct rq *rq, struct task_struct *p)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	u64 poll = ktime_get() + MT_URGENT_POLL_NS;

	if (p->macrotick.linked)
		mt_unlink_ready(rq, p);
	list_add_tail(&p->macrotick.ready, &c->urgent);
	p->macrotick.urgent = true;
	add_nr_running(rq, 1);
	c->poll_ns = MT_URGENT_POLL_NS;
	if (!c->nr_urgent++ || c->poll > poll)
		c->poll = poll;
	mt_want_settle(rq);	/* which programs the timer, wherever this is called */
}

/* Serves a queued thread that must not migrate until it may, unless a window does. */
void mt_add_pinned(struct rq *rq, struct task_struct *p)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	u64 poll = ktime_get() + MT_PINNED_POLL_NS;

	mt_add_urgent(rq, p);
	c->poll_ns = MT_PINNED_POLL_NS;
	c->poll = min(c->poll, poll);
}

/* Where its entity is: only there its threads are looked at. */
void mt_want_settle_of(struct task_struct *p)
{
	mt_unsettle(p);
	mt_want_settle(cpu_rq(READ_ONCE(p->macrotick.entity->cpu)));
}

static void remove_urgent(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	list_del(&m->ready);
	if (!m->parked)
		sub_nr_running(rq, 1);
	m->urgent = false;
	m->parked = false;
	mt_cpu_of(rq)->nr_urgent--;
	if (unlikely(m->entity->stopped))
		mt_want_settle_of(p);	/* no window will serve it */
}

static void set_parked(struct rq *rq, struct task_struct *p, bool parked)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (p->macrotick.parked == parked)
		return;
	p->macrotick.parked = parked;
	list_move_tail(&p->macrotick.ready, parked ? &c->parked : &c->urgent);
	if (parked)
		sub_nr_running(rq, 1);
	else
		add_nr_running(rq, 1);
}

/* A queued thread that nothing serves yet, where its entity is: it belongs in the windows, unless it dies. */
void mt_link_home(struct rq *rq, struct task_struct *p)
{
	if (unlikely(mt_dies_in_class(p)))
		mt_add_urgent(rq, p);
	else if (p->macrotick.state == MACROTICK_READY)
		mt_link_ready(rq, p);
}

static void note_doomed(struct task_struct *p)
{
	p->macrotick.entity->nr_doomed += p->macrotick.pooled && !p->macrotick.doomed;
	p->macrotick.doomed = true;
}

/*
 * A fatal signal: served outside the windows from now on. A pool's thread
 * leaves the class for that, for it can take as long as it likes to die.
 */
void mt_doom(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	note_doomed(p);
	if (unlikely(m->pooled))
		mt_want_slack(rq, p);
	else if (m->queued && !m->urgent)
		mt_add_urgent(rq, p);
}

static void return_to_windows(struct rq *rq, struct task_struct *p)
{
	remove_urgent(rq, p);
	if (unlikely(p->macrotick.astray))
		mt_want_delivery(rq);
	else if (p->macrotick.state == MACROTICK_READY)
		mt_link_ready(rq, p);
	if (mt_lends(p))
		mt_want_settle_of(p);
	if (mt_goes_out(p))
		mt_want_slack(rq, p);
}

/* The thread may migrate again: what it was served for is over. On its own CPU, where it runs. */
void mt_end_urgency(struct rq *rq, struct task_struct *p)
{
	if (p->pi_blocked_on || mt_dies_in_class(p) || mt_is_served(rq, p))
		return;
	return_to_windows(rq, p);
	mt_resched(rq, mt_cpu_of(rq));
}

/* Whether the thread's entity is, or may be, about to leave it behind. */
static bool must_stay(struct rq *rq, struct task_struct *p)
{
	return p->macrotick.entity->roaming && is_migration_disabled(p) && !mt_is_served(rq, p);
}

static bool uses_credit(const struct task_struct *p)
{
	return p->macrotick.pooled && p->macrotick.urgent;
}

static void account_curr(struct rq *rq)
{
	struct macrotick_served *entity = rq->curr->macrotick.entity;
	s64 delta = update_curr_common(rq);

	if (!entity || delta <= 0)
		return;
	mt_lock_entity(entity);
	entity->runtime += delta;
	mt_unlock_entity(entity);
	if (unlikely(entity->slice))
		mt_pool_account(rq->curr, delta);
	if (unlikely(uses_credit(rq->curr)))
		entity->credit -= delta;
}

/*
 * A thread that spins for a lock, or is about to sleep for it, is no different
 * from one that was offered it but for the lock's owner. On the thread's own
 * CPU only: as it does not run meanwhile, what it waits on stays.
 */
static void look_at_urgent_one(struct rq *rq, struct task_struct *p)
{
	struct rt_mutex_waiter *waiter = p->pi_blocked_on;

	if (waiter && mt_may_be_urgent(p))
		set_parked(rq, p, rt_mutex_owner(waiter->lock));
	else if (mt_dies_in_class(p) || must_stay(rq, p))
		set_parked(rq, p, false);
	else
		return_to_windows(rq, p);
}

/**
 * mt_look_at_urgent - end what urgent threads have no right to any longer
 * @rq: this CPU's run queue, locked
 * @c: this CPU's position
 * @now: the instant
 *
 * Threads that have taken the lock they were offered go back to their
 * windows, those whose lock was taken by another wait until it is free.
 */
void mt_look_at_urgent(struct rq *rq, struct mt_cpu *c, u64 now)
{
	struct task_struct *p, *next;
	u64 longest = MT_URGENT_POLL_MAX_NS;

	if (unlikely(uses_credit(rq->curr))) {
		update_rq_clock(rq);
		account_curr(rq);
	}
	list_for_each_entry_safe(p, next, &c->parked, macrotick.ready)
		look_at_urgent_one(rq, p);
	list_for_each_entry_safe(p, next, &c->urgent, macrotick.ready) {
		if (must_stay(rq, p))
			longest = MT_URGENT_POLL_NS;
		look_at_urgent_one(rq, p);
	}
	c->poll_ns = min_t(u64, 2 * c->poll_ns, longest);
	c->poll = now + c->poll_ns;
	mt_if_idle_grant_slack(rq, c);
	mt_resched(rq, c);
}

/* The window of parked threads opens: inside it they may spin. */
void mt_serve_parked(struct rq *rq, struct mt_cpu *c)
{
	struct task_struct *p, *next;

	list_for_each_entry_safe(p, next, &c->parked, macrotick.ready) {
		if (p->macrotick.entity != c->served)
			continue;
		remove_urgent(rq, p);
		mt_link_home(rq, p);
	}
}

static bool is_offered_lock(struct rq *rq, struct task_struct *p)
{
	return p->pi_blocked_on && !mt_is_served(rq, p);
}

static void enqueue_home(struct rq *rq, struct task_struct *p)
{
	p->macrotick.queued = true;
	if (unlikely(is_offered_lock(rq, p) && mt_may_be_urgent(p)))
		mt_add_urgent(rq, p);
	else
		mt_link_home(rq, p);
}

static void enqueue_task_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	struct macrotick_task *m = &p->macrotick;

	if (unlikely(mt_keeps_its_place(flags)))
		return;
	if (likely(!c->fetching))
		mt_advance(rq, ktime_get());
	if (unlikely(__fatal_signal_pending(p)))
		note_doomed(p);
	if (mt_is_elsewhere(c, m->entity))
		mt_enqueue_astray(rq, p);
	else
		enqueue_home(rq, p);
	if (unlikely(mt_lends(p) || m->entity->stopped))
		mt_want_settle_of(p);
	if (unlikely(mt_goes_out(p) && (m->doomed || !mt_is_served(rq, p))))
		mt_want_slack(rq, p);
	mt_resched(rq, c);
	/* Whoever fetches is the timer itself, or programs it. */
	if (likely(!c->fetching))
		mt_rearm(rq);
}

static bool dequeue_task_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
	struct macrotick_task *m = &p->macrotick;

	if (unlikely(mt_keeps_its_place(flags)))
		return true;
	if (unlikely(uses_credit(p)) && p == rq->curr)
		account_curr(rq);
	m->queued = false;
	if (unlikely(m->astray))
		mt_dequeue_astray(p);
	if (m->urgent)
		remove_urgent(rq, p);
	else if (m->linked)
		mt_unlink_ready(rq, p);
	mt_if_idle_grant_slack(rq, mt_cpu_of(rq));
	mt_rearm(rq);
	return true;
}

/* It is no longer urgent, and must not go on here: its entity is elsewhere. */
static void stop_astray(struct rq *rq, struct task_struct *p)
{
	if (unlikely(p->macrotick.astray))
		mt_resched(rq, mt_cpu_of(rq));
}

/* What mt_complete_job() does with the entity's lock. */
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
	else if (m->urgent && !m->doomed)
		remove_urgent(rq, p);	/* whoever waits for a job has the lock it was offered */
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
		if (m->queued && !m->urgent)
			mt_link_ready(rq, p);
	}
}

/**
 * mt_complete_job - the thread waits for its next job
 * @rq: its run queue, locked
 * @p: the thread
 *
 * A pending activation begins at once. One that came before the thread's
 * first wait is stale unless the window that released it is still open.
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

/* The thread has nothing to do before its next job. */
void mt_rest(struct rq *rq, struct task_struct *p)
{
	p->macrotick.at_rest = true;
	if (unlikely(p->sched_class != &macrotick_sched_class && mt_is_member(p)))
		mt_want_settle_of(p);
}

/* The thread leaves the class for good: its job, and a wait by sched_yield(2), are forgotten. */
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

/* The device's wait call ends without a job: the thread goes on in its windows. */
void mt_end_wait(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	mt_lock_entity(m->entity);
	m->in_wait = false;
	if (m->state == MACROTICK_WAITING) {
		m->state = MACROTICK_READY;
		if (m->queued && !m->linked && !m->urgent)
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
	mt_rest(rq, rq->curr);
}

static void wakeup_preempt_macrotick(struct rq *rq, struct task_struct *p, int flags)
{
	if (mt_first(mt_cpu_of(rq)) != rq->curr)
		resched_curr(rq);
}

static int balance_macrotick(struct rq *rq, struct task_struct *prev, struct rq_flags *rf)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (mt_first(c))
		return true;
	mt_if_idle_grant_slack(rq, c);
	return false;
}

/* Whether a thread of the class waits for a lock that the thread owns, itself or for others. */
bool mt_is_owner(struct task_struct *p)
{
	struct task_struct *waiter = rt_mutex_get_top_task(p);

	/* Not for a waiter with SCHED_FIFO 99 of its own. In a chain the next one is boosted. */
	if (!waiter || !(macrotick_policy(waiter->policy) || waiter->normal_prio > MACROTICK_PRIO))
		return false;
	return macrotick_lent_prio(waiter) == MACROTICK_PRIO;
}

/*
 * The owner of a lock that a thread of the class waits for runs in the class
 * of SCHED_FIFO, which deadline tasks precede, and the server of the fair
 * class with them: 50 ms of theirs would pass before it gave the lock back.
 * In place of the waiter it comes before them. As a member outside its
 * windows its priority is one below MACROTICK_PRIO.
 */
static struct task_struct *pick_owner(struct rq *rq)
{
	struct task_struct *p;

	if (likely(rq->rt.highest_prio.curr > MACROTICK_PRIO + 1))
		return NULL;
	p = rt_sched_class.pick_task(rq);
	return p && mt_is_owner(p) ? p : NULL;
}

static struct task_struct *pick_task_macrotick(struct rq *rq)
{
	return mt_first(mt_cpu_of(rq)) ?: pick_owner(rq);
}

static void put_prev_task_macrotick(struct rq *rq, struct task_struct *p, struct task_struct *next)
{
	account_curr(rq);
	if (unlikely(p->pi_blocked_on || mt_lends(p) || p->macrotick.contending))
		mt_note_contender(p);
	if (unlikely(p->macrotick.astray))
		mt_want_delivery(rq);
}

static void set_next_task_macrotick(struct rq *rq, struct task_struct *p, bool first)
{
	p->macrotick.began = true;
	p->se.exec_start = rq_clock_task(rq);
}

static int select_task_rq_macrotick(struct task_struct *p, int cpu, int flags)
{
	return p->macrotick.entity->roaming ? READ_ONCE(p->macrotick.entity->cpu) : task_cpu(p);
}

static void task_tick_macrotick(struct rq *rq, struct task_struct *p, int queued)
{
	struct macrotick_served *entity = p->macrotick.entity;

	account_curr(rq);
	if (likely(!entity || !entity->slice))
		return;
	mt_pool_turn(entity);
	if (mt_first(mt_cpu_of(rq)) != p)
		resched_curr(rq);
}

/* Nobody below has run meanwhile: whom it is to wait for there is not seen by the new class. */
static void switched_from_macrotick(struct rq *rq, struct task_struct *p)
{
	if (task_current(rq, p))
		resched_curr(rq);
}

static void switched_to_macrotick(struct rq *rq, struct task_struct *p)
{
	/* A deadline task may have lent it its parameters. In this class it has none. */
	p->dl.pi_se = &p->dl;
	if (task_on_rq_queued(p))
		resched_curr(rq);
}

static void prio_changed_macrotick(struct rq *rq, struct task_struct *p, int oldprio)
{
	/* There is one priority inside the class. */
}

static void update_curr_macrotick(struct rq *rq)
{
	account_curr(rq);
}

#ifdef CONFIG_SCHED_CORE
static int task_is_throttled_macrotick(struct task_struct *p, int cpu)
{
	if (p->macrotick.entity->roaming && READ_ONCE(p->macrotick.entity->cpu) != cpu)
		return true;
	return (!p->macrotick.urgent || p->macrotick.parked) &&
		!(p->macrotick.linked && mt_is_served(cpu_rq(cpu), p));
}
#endif

/*
 * Omitted: migrate_task_rq, find_lock_rq, task_woken, rq_online and rq_offline
 * (threads migrate with their windows only, CPUs with windows do not go
 * offline), task_fork and task_dead (member.c does it in process context),
 * reweight_task and get_rr_interval (no weights, no slices), yield_to_task (a
 * window is not handed on).
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
