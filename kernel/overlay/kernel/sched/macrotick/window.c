// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the walk through a CPU's windows.
 *
 * Each CPU has one pinned hard hrtimer. It is set to the next boundary that
 * changes something. Other boundaries get no interrupt, for example those of an
 * entity without threads, or of a window after its job is done. The next
 * interrupt or wake-up catches up with them (mt_advance()), and does so at once
 * if the CPU has no threads at all.
 *
 * A late interrupt stays on the grid. Every boundary that passed takes effect
 * in order, and thus job numbers and misses are correct. The CPU goes to the
 * window that is valid at that instant.
 */
#include "internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/macrotick.h>

DEFINE_PER_CPU(struct mt_cpu, mt_cpus);

/* The number of windows in which the next boundary is looked for */
#define MT_LOOKAHEAD	16

static const struct mt_window *current_window(const struct mt_cpu *c)
{
	return &c->schedule->windows[c->pos];
}

/* Links a ready thread. It counts as runnable if its entity's window is open. */
void mt_link_ready(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;

	lockdep_assert_rq_held(rq);
	if (unlikely(entity->pool))
		mt_pool_link(p);
	else
		list_add_tail(&p->macrotick.ready, &entity->ready);
	p->macrotick.linked = true;
	entity->nr_ready++;
	if (mt_cpu_of(rq)->served == entity)
		add_nr_running(rq, 1);
}

void mt_unlink_ready(struct rq *rq, struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;

	lockdep_assert_rq_held(rq);
	list_del(&p->macrotick.ready);
	if (unlikely(p->macrotick.ordered))
		mt_pool_unlink(p);
	p->macrotick.linked = false;
	entity->nr_ready--;
	if (mt_cpu_of(rq)->served == entity)
		sub_nr_running(rq, 1);
}

static void begin_job(struct rq *rq, struct task_struct *p, u64 job, u64 nominal, bool hold)
{
	struct macrotick_task *m = &p->macrotick;

	m->state = MACROTICK_READY;
	m->began = false;
	m->missed = false;
	m->hold = hold;
	m->job = job;
	m->nominal = nominal;
	m->entity->nr_jobs++;
	/* Pairs with take_job(). */
	smp_store_release(&m->has_job, true);
	if (m->queued && !m->linked && !m->pinned)
		mt_link_ready(rq, p);
	trace_macrotick_release(p, m->entity->name, job, nominal);
}

/* The thread resets the count without a lock (take_job()), perhaps on another CPU. */
static void count_lost(struct macrotick_task *m)
{
	u64 lost = READ_ONCE(m->lost);

	while (!try_cmpxchg(&m->lost, &lost, lost + 1))
		;
}

/* Releases a job to a thread. One pending activation is kept; an older one is lost. */
static void activate_thread(struct rq *rq, struct task_struct *p, u64 job, u64 nominal, bool hold)
{
	struct macrotick_task *m = &p->macrotick;

	if (m->state == MACROTICK_WAITING) {
		begin_job(rq, p, job, nominal, hold);
		return;
	}
	if (m->has_pending && m->periodic) {
		count_lost(m);
		m->entity->lost++;
	}
	m->has_pending = true;
	m->pending_job = job;
	m->pending_nominal = nominal;
}

/**
 * mt_activate - releases a job
 * @rq: the entity's run queue, locked
 * @entity: the entity, which is not stopped
 * @job: its number
 * @nominal: the job's nominal instant
 * @hold: whether to hold the threads until then
 */
void mt_activate(struct rq *rq, struct macrotick_served *entity, u64 job, u64 nominal, bool hold)
{
	struct task_struct *p;

	if (!entity->nr_threads)
		return;
	entity->activations++;
	mt_lock_entity(entity);
	list_for_each_entry(p, &entity->threads, macrotick.member) {
		if (likely(!entity->roaming || p->macrotick.joined <= nominal))
			activate_thread(rq, p, job, nominal, hold);
	}
	mt_unlock_entity(entity);
}

/* Whether the window must serve its roaming entity. Clears @begins if it releases no job. */
static bool open_roaming(struct rq *rq, struct mt_cpu *c, const struct mt_window *w, bool *begins)
{
	if (mt_is_elsewhere(c, w->entity) || w->entity->stopped)
		return false;
	*begins &= mt_follow_route(rq, c, w);
	return true;
}

/* The time for offered locks that the threads of a pool have between two windows */
#define MT_POOL_CREDIT_NS	(50 * NSEC_PER_USEC)

/* Whether an entity missed something because its window is over before it could open. */
static bool matters(const struct mt_cpu *c, const struct mt_window *w)
{
	return w->entity->nr_ready || ((w->flags & MACROTICK_WINDOW_ACTIVATE) &&
				       mt_concerns(w->entity, c->base + w->offset));
}

static void open_window(struct rq *rq, struct mt_cpu *c, const struct mt_window *w, u64 now)
{
	struct macrotick_served *entity = w->entity;
	bool over = unlikely(now >= c->base + w->end) && matters(c, w);
	bool begins = w->flags & MACROTICK_WINDOW_ACTIVATE;

	c->open = true;
	if (unlikely(entity->roaming) && !open_roaming(rq, c, w, &begins))
		return;
	if (unlikely(entity->stopped)) {
		if (w->flags & MACROTICK_WINDOW_SYNC)
			mt_sync(rq, c, w, now);
		return;
	}
	if (over) {
		entity->skipped++;
		trace_macrotick_window_skipped(entity->name, cpu_of(rq), c->base + w->offset);
	}
	if (begins) {
		mt_note_release(entity, c->base + w->offset, now);
		mt_activate(rq, entity, mt_job_at(c->table, w, c->cycle), c->base + w->offset,
			    w->lead);
	}
	c->served = entity;
	if (unlikely(entity->pool))
		entity->credit = MT_POOL_CREDIT_NS;
	if (unlikely(entity->slice))
		mt_pool_turn(entity);
	add_nr_running(rq, entity->nr_ready + entity->nr_lent);
	mt_update_credit(rq, entity);
	trace_macrotick_window_begin(entity->name, cpu_of(rq), c->base + w->offset);
}

static void next_position(struct mt_cpu *c)
{
	if (++c->pos < c->schedule->nr_windows)
		return;
	c->pos = 0;
	c->base += c->table->cycle;
	c->cycle++;
}

static void unserve(struct rq *rq, struct mt_cpu *c)
{
	struct macrotick_served *entity = c->served;

	c->open = false;
	if (unlikely(!entity))
		return;
	if (unlikely(rq->curr->pi_blocked_on))
		mt_note_contender(rq, rq->curr);
	c->served = NULL;
	mt_update_credit(rq, entity);
	if (likely(!entity->nr_ready && !entity->nr_lent))
		return;
	sub_nr_running(rq, entity->nr_ready + entity->nr_lent);
	if (unlikely(entity->roaming))
		mt_release_pinned(rq, entity);
}

/* Ends the service of a window for its entity; the window itself remains. */
void mt_end_service(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	bool open = c->open;

	unserve(rq, c);
	c->open = open;
}

static void close_window(struct rq *rq, struct mt_cpu *c, const struct mt_window *w)
{
	struct macrotick_served *entity = w->entity;

	if (c->served || !entity->roaming)
		trace_macrotick_window_end(entity->name, cpu_of(rq), c->base + w->end);
	if ((w->flags & MACROTICK_WINDOW_DEADLINE) && c->served && entity->nr_jobs)
		mt_check_deadline(c, w, c->base + w->end);
	unserve(rq, c);
	next_position(c);
}

static bool must_skip_cycles(const struct mt_cpu *c, u64 now)
{
	return now >= c->base + 2 * c->table->cycle && !c->staged;
}

/* Returns an entity's slot in the table that is dispatched, or NULL. */
static const struct mt_slot *slot_of(const struct mt_cpu *c, const struct macrotick_served *entity)
{
	const struct mt_slot *slot = mt_find_slot(c->table, entity->name);

	return slot && slot->entity == entity ? slot : NULL;
}

/* After a long standstill, passes over whole cycles without a walk. */
static noinline void skip_cycles(struct rq *rq, struct mt_cpu *c, u64 now)
{
	struct macrotick_served *entity;
	u64 n, cycle = c->table->cycle;

	if (c->open)
		close_window(rq, c, current_window(c));
	mt_follow_grid(c);
	if (!must_skip_cycles(c, now))
		return;
	n = div64_u64(now - c->base, cycle) - 1;
	c->base += n * cycle;
	c->cycle += n;
	list_for_each_entry(entity, &c->entities, node) {
		const struct mt_slot *slot = slot_of(c, entity);

		if (slot && !entity->roaming && !entity->stopped)
			entity->skipped += n * slot->nr_windows;
	}
}

/*
 * Returns the instant until which windows here concern no thread. A roaming
 * entity passes over its windows by itself (route.c), whatever the position of
 * this CPU is.
 */
static u64 unattended_until(const struct mt_cpu *c, u64 now)
{
	if (c->staged)
		return 0;
	if (!atomic_read_acquire(&c->nr_roaming))	/* pairs with count_roaming() */
		return now;
	return min(now, READ_ONCE(c->roaming_since));
}

/*
 * Returns the first window, not before @from, that ends later than @into its
 * cycle; or nr_windows.
 */
static unsigned int find_later(const struct mt_schedule *s, unsigned int from, u64 into)
{
	unsigned int end = s->nr_windows;

	while (from < end) {
		unsigned int middle = from + (end - from) / 2;

		if (s->windows[middle].end > into)
			end = middle;
		else
			from = middle + 1;
	}
	return from;
}

/*
 * Passes over windows that ended by @until and concerned no thread, without a
 * walk: there may be a million of them. Sync windows among them decide nothing.
 */
static noinline void pass_unattended(struct rq *rq, struct mt_cpu *c, u64 until)
{
	u64 n, cycle = c->table->cycle;

	if (until < c->base + current_window(c)->end)
		return;
	if (c->open)
		close_window(rq, c, current_window(c));
	mt_follow_grid(c);
	if (until < c->base + current_window(c)->end)
		return;
	n = div64_u64(until - c->base, cycle);
	c->base += n * cycle;
	c->cycle += n;
	c->pos = find_later(c->schedule, n ? 0 : c->pos, until - c->base);
	if (c->pos == c->schedule->nr_windows) {
		c->pos--;
		next_position(c);
	}
}

/* Reschedules, unless the CPU runs the thread that the class prefers. */
void mt_resched(struct rq *rq, struct mt_cpu *c)
{
	struct macrotick_served *entity = NULL;
	struct task_struct *first = mt_first(c, &entity), *curr = rq->curr;

	lockdep_assert_rq_held(rq);
	if (first == c->running && entity == c->charged)
		return;
	if (c->running && curr->macrotick.linked && !test_tsk_need_resched(curr))
		curr->macrotick.entity->preemptions++;
	if (first)
		timershield_expect(first);
	resched_curr(rq);
}

static void begin_table(struct mt_cpu *c, unsigned int cpu, struct macrotick_table *table)
{
	const struct mt_schedule *schedule = &table->schedules[cpu];

	c->table = schedule->nr_windows ? table : NULL;
	c->schedule = c->table ? schedule : NULL;
	c->base = table->epoch;
	c->cycle = 0;
	c->shift = 0;
	c->pos = 0;
	c->wanted = NULL;
}

/* Whether a CPU is at a swap, between two cycles with no window open. */
static bool is_at_swap(const struct mt_cpu *c, u64 base)
{
	/* Pairs with set_epoch(). */
	return unlikely(c->staged) && base >= smp_load_acquire(&c->staged->epoch);
}

static void swap_table(struct rq *rq, struct mt_cpu *c)
{
	struct macrotick_served *entity;

	list_for_each_entry(entity, &c->entities, node) {
		if (entity->leaves && !entity->roaming)
			mt_stop_entity(c, entity);
	}
	mt_swap_routes(rq, c);
	begin_table(c, cpu_of(rq), c->staged);
	c->staged = NULL;
	c->tell |= mt_swapped();
}

/*
 * Whether a window cannot open before its entity arrives. If the window is
 * over, the entity need not come any more.
 */
static bool must_fetch(const struct mt_cpu *c, const struct mt_window *w, u64 now)
{
	return mt_is_elsewhere(c, w->entity) && READ_ONCE(w->entity->nr_threads) &&
		!READ_ONCE(w->entity->stopped) && now < c->base + w->end;
}

/* Whether a window is over and concerned no thread: then its begin and end need no trace event. */
static bool passed_by(const struct mt_cpu *c, const struct mt_window *w, u64 now)
{
	return now >= c->base + w->end && !w->entity->nr_threads && !w->entity->roaming &&
		!(w->flags & MACROTICK_WINDOW_SYNC);
}

static void advance(struct rq *rq, struct mt_cpu *c, u64 now)
{
	c->wanted = NULL;
	if (unlikely(!c->nr_threads))
		pass_unattended(rq, c, unattended_until(c, now));
	if (unlikely(must_skip_cycles(c, now)))
		skip_cycles(rq, c, now);
	while (c->table) {
		const struct mt_window *w = current_window(c);

		if (c->open) {
			if (now < c->base + w->end)
				break;
			close_window(rq, c, w);
			continue;
		}
		if (is_at_swap(c, c->base)) {
			if (now < c->base)
				break;
			swap_table(rq, c);
			if (c->table && must_skip_cycles(c, now))
				skip_cycles(rq, c, now);
			continue;
		}
		if (passed_by(c, w, now)) {
			next_position(c);
			continue;
		}
		if (now < mt_opening(c, w, c->base))
			break;
		if (must_fetch(c, w, now)) {
			c->wanted = w->entity;
			break;
		}
		open_window(rq, c, w, now);
	}
}

static __always_inline void bring_up(struct rq *rq, struct mt_cpu *c, u64 now)
{
	if (!c->table)
		return;
	advance(rq, c, now);
	if (unlikely(c->tell))
		mt_kick(c);
	mt_resched(rq, c);
}

/* mt_advance() for a caller that fetches wanted entities itself. */
void mt_bring_up(struct rq *rq, struct mt_cpu *c, u64 now)
{
	bring_up(rq, c, now);
}

/**
 * mt_advance - brings a CPU's position in the table up to an instant
 * @rq: the CPU's run queue, locked
 * @now: the instant
 *
 * The caller may be on any CPU, and may be queueing a thread. The function
 * therefore does not program the timer. It leaves changes of class and fetches
 * from other CPUs to the irq_work.
 */
void mt_advance(struct rq *rq, u64 now)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	bring_up(rq, c, now);
	if (unlikely(c->wanted))
		mt_kick(c);
}

static bool end_matters(const struct mt_window *w)
{
	return w->entity->nr_ready || w->entity->nr_lent ||
		((w->flags & MACROTICK_WINDOW_DEADLINE) && w->entity->nr_jobs);
}

static bool begin_matters(const struct mt_window *w)
{
	if (unlikely(w->entity->stopped))
		return w->flags & MACROTICK_WINDOW_SYNC;
	if (unlikely(w->entity->roaming))
		return READ_ONCE(w->entity->nr_threads);
	return w->entity->nr_ready || w->entity->nr_lent ||
		((w->flags & MACROTICK_WINDOW_ACTIVATE) && w->entity->nr_threads);
}

/* Returns the next boundary that changes something, or an earlier one. */
static u64 next_boundary(const struct mt_cpu *c)
{
	const struct mt_schedule *s = c->schedule;
	unsigned int i, pos = c->pos;
	u64 base = c->base;

	if (c->open) {
		if (c->served && end_matters(current_window(c)))
			return base + current_window(c)->end;
		pos++;
	}
	for (i = 0; ; i++, pos++) {
		if (pos == s->nr_windows) {
			pos = 0;
			base += c->table->cycle;
		}
		if (is_at_swap(c, base))
			return base;
		if (i == MT_LOOKAHEAD || begin_matters(&s->windows[pos]))
			return mt_opening(c, &s->windows[pos], base);
	}
}

static u64 next_event(const struct mt_cpu *c)
{
	bool used = c->nr_threads || c->staged || unlikely(atomic_read(&c->nr_roaming));
	u64 next = c->table && used ? next_boundary(c) : U64_MAX;

	return unlikely(c->nr_pinned) ? min(next, c->poll) : next;
}

/* The common part of the timer and the irq_work. */
static __always_inline void catch_up(struct rq *rq, struct mt_cpu *c)
{
	u64 now = ktime_get();

	bring_up(rq, c, now);
	if (unlikely(c->nr_pinned) && now >= c->poll)
		mt_look_at_pinned(rq, c, now);
}

/* The number of fetches in one interrupt; the next interrupt follows at once */
#define MT_FETCHES	4

static noinline void fetch_wanted(struct rq *rq, struct mt_cpu *c)
{
	unsigned int n;

	for (n = 0; c->wanted && n < MT_FETCHES; n++) {
		struct rq *src = cpu_rq(READ_ONCE(c->wanted->cpu));

		raw_spin_rq_unlock(rq);
		mt_fetch(rq, src);
		catch_up(rq, c);
	}
}

/*
 * Brings this CPU's position up to now, and fetches wanted entities. May
 * release and take the lock of the run queue.
 */
static __always_inline void catch_up_and_fetch(struct rq *rq, struct mt_cpu *c)
{
	catch_up(rq, c);
	if (unlikely(c->wanted))
		fetch_wanted(rq, c);
}

static enum hrtimer_restart mt_timer_fn(struct hrtimer *timer)
{
	struct mt_cpu *c = container_of(timer, struct mt_cpu, timer);
	struct rq *rq = this_rq();

	/* A suspend moved the timer off its CPU, which arms it again at its return. */
	if (unlikely(c != mt_cpu_of(rq)))
		return HRTIMER_NORESTART;
	raw_spin_rq_lock(rq);
	catch_up_and_fetch(rq, c);
	c->armed = next_event(c);
	raw_spin_rq_unlock(rq);
	if (c->armed == U64_MAX)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(c->armed));
	return HRTIMER_RESTART;
}

static void program_timer(struct mt_cpu *c)
{
	u64 next = next_event(c);

	if (next == c->armed)
		return;
	c->armed = next;
	if (next == U64_MAX)
		hrtimer_try_to_cancel(&c->timer);
	else
		hrtimer_start(&c->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED_HARD);
}

static void mt_work_fn(struct irq_work *work)
{
	struct rq *rq = this_rq();
	struct mt_cpu *c = mt_cpu_of(rq);
	bool tell, astray;

	raw_spin_rq_lock(rq);
	catch_up_and_fetch(rq, c);
	program_timer(c);
	tell = c->tell;
	c->tell = false;
	astray = !list_empty(&c->astray);
	raw_spin_rq_unlock(rq);
	if (unlikely(astray))
		mt_deliver(rq);
	if (unlikely(tell))
		mt_tell();
}

/**
 * mt_rearm - programs the timer after a change of the boundaries that matter
 * @rq: the CPU's run queue, locked
 *
 * The timer is pinned. Only its own CPU can program it.
 */
void mt_rearm(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (cpu_of(rq) == smp_processor_id())
		program_timer(c);
	else if (next_event(c) != c->armed)
		mt_kick(c);
}

/**
 * mt_resume - realigns this CPU on the grid after a suspend
 * @rq: this CPU's run queue
 *
 * The CPU that took the timer over may be in mt_timer_fn(), which finds that
 * the timer is not its own. If this CPU armed the timer before that is over,
 * the timer would stay on the other CPU, and expire there in vain.
 */
void mt_resume(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	hrtimer_cancel(&c->timer);
	guard(irqsave)();
	raw_spin_rq_lock(rq);
	c->armed = U64_MAX;
	mt_advance(rq, ktime_get());
	mt_rearm(rq);
	raw_spin_rq_unlock(rq);
}

/**
 * mt_dispatch - begins to dispatch a table on this CPU
 * @rq: this CPU's run queue, locked
 * @table: the table, with its epoch set; the caller keeps a reference
 */
void mt_dispatch(struct rq *rq, struct macrotick_table *table)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	begin_table(c, cpu_of(rq), table);
	c->open = false;
	c->served = NULL;
	program_timer(c);
}

/**
 * mt_stage - makes a CPU change to another table at that table's epoch
 * @rq: this CPU's run queue, locked
 * @table: the table; its epoch is far away until all CPUs have it
 */
void mt_stage(struct rq *rq, struct macrotick_table *table)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (!c->table)
		return;
	mt_advance(rq, ktime_get());
	c->staged = table;
}

/**
 * mt_begin_swap - programs the timer when the staged table has its epoch
 * @rq: this CPU's run queue, locked
 * @table: the table; the CPU may have changed to it already
 */
void mt_begin_swap(struct rq *rq, struct macrotick_table *table)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	if (c->staged) {
		program_timer(c);
	} else if (c->table != table && table->schedules[cpu_of(rq)].nr_windows) {
		mt_dispatch(rq, table);
		c->tell |= mt_swapped();
		mt_kick(c);
	}
}

/**
 * mt_halt - ends dispatching on this CPU; an open window ends without a check for misses
 * @rq: this CPU's run queue, locked
 */
void mt_halt(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	c->staged = NULL;
	if (!c->table)
		return;
	if (c->open)
		unserve(rq, c);
	c->table = NULL;
	c->schedule = NULL;
	c->wanted = NULL;
	program_timer(c);
	mt_resched(rq, c);
}

void mt_cpu_init(struct mt_cpu *c, unsigned int cpu)
{
	c->cpu = cpu;
	hrtimer_setup(&c->timer, mt_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	c->work = IRQ_WORK_INIT_HARD(mt_work_fn);
	c->armed = U64_MAX;
	INIT_LIST_HEAD(&c->entities);
	INIT_LIST_HEAD(&c->astray);
	INIT_LIST_HEAD(&c->creditors);
	INIT_LIST_HEAD(&c->pinned);
}
