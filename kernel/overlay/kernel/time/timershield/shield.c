// SPDX-License-Identifier: GPL-2.0-only
/*
 * TimerShield: the timers of less important tasks wait. Included by hrtimer.c.
 *
 * The timer of a sleep has a level if its task is a real-time task that is
 * bound to the timer's CPU. Such a task cannot run elsewhere while something
 * more important runs there. The timer is then in the CPU's order (order.h),
 * not in the queue of its base. Without PREEMPT_RT, timers of ordinary tasks
 * are there as well, at the lowest level (late.c). All other timers, those of
 * the scheduler included, are never masked and stay in their queues.
 *
 * A CPU has a level as well: that of the task that runs there, or is about to.
 * Timers of lower levels are masked: the event device is not programmed for
 * them, and the kernel does not serve them when they have expired. The level of
 * the CPU
 *
 *   - follows the task that __schedule() picks, and priority changes of the running
 *     task.
 *   - rises to the level of a timer that was served and caused a wake-up.
 *   - rises to the level of a thread when its window begins. In both cases the other
 *     timers wait until __schedule() has decided.
 *
 * If a lower level lets expired timers through, an irq_work serves all of them
 * in one interrupt.
 *
 * At some levels, the interrupt of the tick and of timers that expire in the
 * softirq comes later (late.c).
 *
 * Locking: run queue, then hrtimer_cpu_base. Only the CPU itself changes its
 * level, with interrupts off. The base's lock protects the order. A task has at
 * most one timer with a level, task->timershield.
 */
#ifdef CONFIG_TIMERSHIELD

#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>

#include "order.h"
#include "control.h"
#include "../tick-sched.h"
#include "../../sched/timershield.h"

#define CREATE_TRACE_POINTS
#include <trace/events/timershield.h>

struct ts_cpu {
	struct ts_order	order;
	int		level;	/* timers of lower levels are masked */
	bool		on;	/* the order takes timers */
	bool		held;	/* the tick may have waited for a job to end */
	struct hrtimer	*cursor;	/* where ts_fill_from() goes on, in the queue of its base */
	struct hrtimer	*tick;
	struct irq_work	work;	/* checks the level, serves timers, programs the device */
};

static void ts_work(struct irq_work *work);

static DEFINE_PER_CPU(struct ts_cpu, ts_cpus) = {
	.order	= TS_ORDER_INIT,
	.work	= IRQ_WORK_INIT_HARD(ts_work),
};
DEFINE_PER_CPU(struct ts_stats, ts_stats);
DEFINE_STATIC_KEY_FALSE(timershield_on);

static struct ts_cpu *ts_cpu_of(const struct hrtimer_cpu_base *cpu_base)
{
	return per_cpu_ptr(&ts_cpus, cpu_base->cpu);
}

/* The level of the effective priority, unless windows or servers make the task more important. */
static __always_inline int ts_level_of(const struct task_struct *p)
{
	int prio = READ_ONCE(p->prio), level = MAX_RT_PRIO - prio;

	if (prio >= MAX_RT_PRIO)
		level = TS_LEVEL_NORMAL;
	else if (prio < 0)
		level = TS_LEVEL_DEADLINE;
	return timershield_is_served() ? max(level, macrotick_level(p)) : level;
}

static noinline int ts_level(const struct task_struct *p)
{
	return ts_level_of(p);
}

/* The level of a running task depends on the reason for its pick, whatever its class is. */
static int ts_level_of_running(const struct task_struct *p)
{
	int prio = READ_ONCE(p->prio), level = TS_LEVEL_NORMAL;

	if (timershield_is_served())
		level = macrotick_running_level(task_cpu(p));
	if (level != TS_LEVEL_NORMAL || prio >= MAX_RT_PRIO)
		return level;
	return prio < 0 ? TS_LEVEL_DEADLINE : MAX_RT_PRIO - prio;
}

static __always_inline bool ts_is_bound(const struct task_struct *p, unsigned int cpu)
{
	return nr_cpu_ids == 1 ||
		(READ_ONCE(p->nr_cpus_allowed) == 1 && cpumask_test_cpu(cpu, &p->cpus_mask));
}

#include "late.c"

/* Returns the task of a timer that can have a level, or NULL. */
static struct task_struct *ts_sleeper(struct hrtimer *timer, const struct hrtimer_clock_base *base)
{
	if (ts_function(timer) != hrtimer_wakeup || base->index >= TS_CLOCKS)
		return NULL;
	return container_of(timer, struct hrtimer_sleeper, timer)->task;
}

static __always_inline void ts_add(struct hrtimer *timer, struct hrtimer_clock_base *base,
				   int level, bool *matters)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	ktime_t expires = ktime_sub(timer->node.expires, base->offset);

	timer->shield = 1 + level;
	ts_set_queued(timer);
	*matters = expires < cpu_base->expires_next &&
		(level >= READ_ONCE(ts->level) || (TS_HAS_ORDINARY && level == TS_LEVEL_NORMAL));
	ts_order_add(&ts->order, &timer->node, level, base->index, expires);
}

/* Keeps a timer that an ordinary task arms at the lowest level. Returns false for other timers. */
static bool ts_keep_ordinary(struct hrtimer *timer, struct hrtimer_clock_base *base,
			     bool *matters)
{
	if (!ts_is_ordinary(timer, base))
		return false;
	ts_add(timer, base, TS_LEVEL_NORMAL, matters);
	return true;
}

static noinline bool ts_enqueue(struct hrtimer *timer, struct hrtimer_clock_base *base,
				bool *matters)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	struct task_struct *p = ts_sleeper(timer, base);
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	int level;

	if (!ts->on || !hrtimer_hres_active(cpu_base))
		return false;
	if (!p)
		return ts_keep_tick(timer, cpu_base, matters) ||
			ts_keep_ordinary(timer, base, matters);
	/*
	 * Also a barrier: ts_follow() sees the timer, or the lines below see
	 * the change that called it.
	 */
	if (cmpxchg(&p->timershield.base, NULL, base))
		return false;
	level = ts_level_of(p);
	if ((level == TS_LEVEL_NORMAL && !TS_HAS_ORDINARY) || !ts_is_bound(p, cpu_base->cpu)) {
		WRITE_ONCE(p->timershield.base, NULL);
		return false;
	}
	p->timershield.timer = timer;
	ts_add(timer, base, level, matters);
	return true;
}

/* Makes the walk over a queue go on at a timer. */
static void ts_set_cursor(struct ts_cpu *ts, struct ts_node *node)
{
	ts->cursor = node ? container_of(node, struct hrtimer, node) : NULL;
	if (ts->cursor)
		ts->cursor->shield = TS_CURSOR;
}

/* Takes a timer out of the ordinary queue. */
static __cold void ts_unqueue(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	if (!ts_head_del(&base->active, &timer->node))
		base->cpu_base->active_bases &= ~(1 << base->index);
	ts_base_changed(base);
}

/* Removes the tick, or an ordinary timer at the cursor. */
static noinline void ts_dequeue_other(struct hrtimer *timer, struct hrtimer_clock_base *base,
				      unsigned int shield)
{
	if (shield != TS_CURSOR)
		return;
	ts_set_cursor(ts_cpu_of(base->cpu_base), ts_head_next(&timer->node));
	ts_unqueue(timer, base);
}

static noinline void ts_dequeue(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	struct hrtimer_sleeper *sleeper = container_of(timer, struct hrtimer_sleeper, timer);
	unsigned int shield = timer->shield;

	timer->shield = 0;
	if (unlikely(shield >= TS_CURSOR)) {
		ts_dequeue_other(timer, base, shield);
		return;
	}
	if (!TS_HAS_ORDINARY || ts_function(timer) == hrtimer_wakeup)
		WRITE_ONCE(sleeper->task->timershield.base, NULL);
	ts_order_del(&ts_cpu_of(base->cpu_base)->order, base->cpu_base->clock_base, &timer->node,
		     shield - 1, base->index);
}

/* Returns the timer that expires first at or above a level. */
static noinline struct ts_next ts_earliest(struct hrtimer_cpu_base *cpu_base, int level)
{
	return ts_order_next(&ts_cpu_of(cpu_base)->order, cpu_base->clock_base, level);
}

static noinline ktime_t ts_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	struct ts_next first = ts_earliest(cpu_base, READ_ONCE(ts_cpu_of(cpu_base)->level));

	return min(expires, max(first.expires, 0));
}

/* Returns the first expiry of all timers, whatever the level of the CPU is. */
static noinline ktime_t ts_soonest(struct hrtimer_cpu_base *cpu_base)
{
	return ts_earliest(cpu_base, TS_LEVEL_NORMAL).expires;
}

static struct hrtimer *ts_timer_of(struct ts_node *node)
{
	return node ? container_of(node, struct hrtimer, node) : NULL;
}

static noinline ktime_t ts_next_event(struct hrtimer_cpu_base *cpu_base, ktime_t expires_next)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	int level = READ_ONCE(ts->level);
	ktime_t tick = ts_tick(cpu_base, level), ordinary = ts_ordinary(cpu_base, level);
	struct ts_next first;

	/* A clock may have been set. */
	if (unlikely(ts->order.clocks & ~BIT(HRTIMER_BASE_MONOTONIC)))
		ts_order_look(&ts->order, cpu_base->clock_base);
	if (tick < expires_next) {
		cpu_base->next_timer = ts->tick;
		expires_next = tick;
	}
	if (ordinary < expires_next) {
		cpu_base->next_timer = ts_timer_of(ts_first_ordinary(cpu_base).node);
		expires_next = ordinary;
	}
	first = ts_earliest(cpu_base, level);
	if (first.expires >= expires_next)
		return expires_next;
	cpu_base->next_timer = ts_timer_of(first.node);
	return max(first.expires, 0);
}

/*
 * After this number of timers the kernel reads the clock again: something more
 * important may have expired.
 */
#define TS_BATCH	4

/* Returns an expired timer that need not wait, of the highest level; or NULL. */
static __always_inline struct hrtimer *ts_due(struct hrtimer_cpu_base *cpu_base,
					      struct ts_cpu *ts, ktime_t now)
{
	struct ts_node *node = ts_order_expired(&ts->order, cpu_base->clock_base, now);

	if (node && container_of(node, struct hrtimer, node)->shield > ts->level)
		return container_of(node, struct hrtimer, node);
	if (TS_HAS_ORDINARY && ts_ordinary(cpu_base, ts->level) <= now)
		return ts_timer_of(ts_first_ordinary(cpu_base).node);
	return NULL;
}

/*
 * Serves expired timers, the highest level first. After a wake-up, lower levels
 * wait for the next __schedule(). The tick comes last, and once. It accounts
 * for the context that the timer's interrupt interrupted, and is therefore
 * served in that interrupt only.
 */
static noinline void ts_serve(struct hrtimer_cpu_base *cpu_base, ktime_t now,
			      unsigned long flags, bool with_tick)
{
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);
	unsigned int n = 0;

	for (;;) {
		struct hrtimer *timer = ts_due(cpu_base, ts, now);
		ktime_t basenow;
		int level = -1;

		if (timer) {
			level = timer->shield - 1;
			__this_cpu_inc(ts_stats.served);
		} else {
			if (!with_tick || now < ts_tick(cpu_base, ts->level))
				break;
			timer = ts->tick;
			with_tick = false;
			ts->held |= ts->level == TS_LEVEL_WINDOW;
		}
		basenow = ktime_add(now, timer->base->offset);
		ts_run(cpu_base, timer, basenow, flags);
		if (level < 0)
			ts->held = false;
		/* A window of a higher level may be open by now. */
		if (need_resched() && level > ts->level)
			WRITE_ONCE(ts->level, level);
		if (++n % TS_BATCH)
			continue;
		/* There can be many timers, and a window must begin in time. */
		now = ktime_get();
		__hrtimer_run_queues(cpu_base, now, flags, HRTIMER_ACTIVE_HARD);
	}
	if (need_resched() && ts->order.soonest <= now)
		__this_cpu_inc(ts_stats.stopped);
}

static noinline void ts_expire(struct hrtimer_cpu_base *cpu_base, ktime_t now,
			       unsigned long flags)
{
	ts_serve(cpu_base, now, flags, true);
}

/*
 * Checks after a fall of the level whether the device must be programmed.
 * Returns true if a timer that was masked expires before all others. If it has
 * expired already, the irq_work serves it, and the function returns false.
 */
static bool ts_unmasks(struct hrtimer_cpu_base *cpu_base, struct ts_cpu *ts)
{
	ktime_t first = ts_earliest(cpu_base, ts->level).expires;

	if (min(first, ts_late(cpu_base, ts->level)) >= ts_device(cpu_base))
		return false;
	if (first > ktime_get())
		return true;
	irq_work_queue(&ts->work);
	return false;
}

/* After a rise of the level: whether the device stands at a timer that is masked or may wait. */
static bool ts_masks(struct hrtimer_cpu_base *cpu_base, struct ts_cpu *ts, int before)
{
	struct ts_next first = ts_earliest(cpu_base, before);
	ktime_t device = ts_device(cpu_base);

	if (!(first.expires != TS_NEVER && first.level < ts->level &&
	      max(first.expires, 0) == device) &&
	    !(ts_late(cpu_base, before) == device && ts_late(cpu_base, ts->level) != device))
		return false;
	this_cpu_inc(ts_stats.masked);
	trace_timershield_masked(max(first.level, 0), ts->level, device);
	return true;
}

/* Programs the device, if necessary, after a change of this CPU's level. */
static noinline void ts_look(int before)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);

	ts->held |= before == TS_LEVEL_WINDOW;
	raw_spin_lock(&cpu_base->lock);
	/* A CPU that goes offline has nothing to serve, and takes no irq_work any longer. */
	if (cpu_base->online &&
	    (ts->level < before ? ts_unmasks(cpu_base, ts) : ts_masks(cpu_base, ts, before)))
		ts_program(cpu_base);
	raw_spin_unlock(&cpu_base->lock);
}

/*
 * Whether the event device may stay as it is at another level. Neither the
 * softirq nor the tick may be concerned. At a lower level, nothing may expire
 * before the instant of the device. At a higher level, the device must not
 * stand at a timer of the order that is masked there.
 *
 * These checks need no lock. Another CPU may be changing the order. If a timer
 * that it adds or moves expires before the instant of the device, that CPU
 * queues this CPU's irq_work (ts_requeue()). Otherwise the device's interrupt
 * comes first.
 */
static __always_inline bool ts_stays_lower(int before)
{
	ktime_t expires_next = ts_this_device();

	return __this_cpu_read(ts_cpus.order.soonest) >= expires_next &&
		__this_cpu_read(hrtimer_bases.softirq_expires_next) > expires_next &&
		before != TS_LEVEL_WINDOW;
}

static __always_inline bool ts_stays_higher(int level)
{
	ktime_t expires_next = ts_this_device();

	return __this_cpu_read(hrtimer_bases.softirq_expires_next) > expires_next &&
		(__this_cpu_read(ts_cpus.order.soonest) > expires_next ||
		 __this_cpu_read(ts_cpus.order.soonest_level) >= level) &&
		level != TS_LEVEL_WINDOW;
}

/* Sets this CPU's level for the task that it runs. */
static __always_inline void ts_set_level(int level)
{
	int before = __this_cpu_read(ts_cpus.level);

	if (level == before)
		return;
	__this_cpu_write(ts_cpus.level, level);
	if (!(level < before ? ts_stays_lower(before) : ts_stays_higher(level)))
		ts_look(before);
}

/**
 * __timershield_run - sets the level before this CPU runs a task
 * @next: the task
 *
 * With the run queue locked. The task may have run before: the level can have
 * risen for a woken thread that does not run after all.
 */
void __timershield_run(struct task_struct *next)
{
	/* Also in the middle of a switch: an empty order has nothing to mask. */
	ts_set_level(ts_level_of_running(next));
}

/**
 * __timershield_expect - raises the level for a task that a CPU is about to run
 * @next: the task, on that CPU's run queue, which is locked
 *
 * If a timer of this CPU has found the task, timers below the task's level
 * wait, even if they expired at the same instant.
 */
void __timershield_expect(struct task_struct *next)
{
	int level = ts_level(next);

	if (task_cpu(next) == smp_processor_id() && this_cpu_ptr(&hrtimer_bases)->ts_serving &&
	    level > this_cpu_read(ts_cpus.level))
		this_cpu_write(ts_cpus.level, level);
}

static void ts_trace_deferred(struct hrtimer_cpu_base *cpu_base, struct ts_cpu *ts,
			      ktime_t now)
{
	struct hrtimer *timer;

	if (!trace_timershield_deferred_enabled())
		return;
	timer = ts_due(cpu_base, ts, now);
	if (timer)
		trace_timershield_deferred(timer->shield - 1, ts->level,
					   ktime_sub(hrtimer_get_expires(timer),
						     timer->base->offset));
}

static void ts_refresh_level(struct ts_cpu *ts)
{
	ts->held |= ts->level == TS_LEVEL_WINDOW;
	WRITE_ONCE(ts->level, ts_level_of_running(current));
}

/* Serves timers that were let through, and follows changes by other CPUs. */
static void ts_work(struct irq_work *work)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);
	unsigned long flags;
	u64 served;
	ktime_t now;

	raw_spin_lock_irqsave(&cpu_base->lock, flags);
	/*
	 * If irq_work has no interrupt of its own, this runs in that of the tick,
	 * which handles the rest. A device that is yet to be programmed will have
	 * an interrupt at once.
	 */
	if (unlikely(!cpu_base->online || cpu_base->ts_serving)) {
		ts_program_later(cpu_base);
		raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
		return;
	}
	if (!need_resched())
		ts_refresh_level(ts);
	now = hrtimer_update_base(cpu_base);
	served = __this_cpu_read(ts_stats.served);
	ts_trace_deferred(cpu_base, ts, now);
	/* Callbacks that start timers must not program the device: that is done below. */
	cpu_base->ts_serving = 1;
	ts_serve(cpu_base, now, flags, false);
	cpu_base->ts_serving = 0;
	this_cpu_add(ts_stats.deferred, __this_cpu_read(ts_stats.served) - served);
	hrtimer_force_reprogram(cpu_base, 1);
	raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
}

/* Moves a timer to the ordinary queue. */
static void ts_give_up(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	timer->base = base;
	base->cpu_base->active_bases |= 1 << base->index;
	ts_head_add(&base->active, &timer->node);
	ts_base_changed(base);
}

static bool ts_is_in_place(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	const struct task_struct *p = ts_sleeper(timer, base);

	return timer->shield == 1 + ts_level_of(p) && ts_is_bound(p, base->cpu_base->cpu);
}

#if MT_LINUX_7
/* Starts a timer again on the same base, without a look at its neighbours in the queue. */
static noinline bool ts_restart(struct hrtimer *timer, struct hrtimer_clock_base *base,
				enum hrtimer_mode mode, ktime_t expires, u64 delta)
{
	bool was_queued = timer->is_queued;

	if (was_queued) {
		debug_hrtimer_deactivate(timer);
		__remove_hrtimer(timer, base, HRTIMER_STATE_ENQUEUED, false);
	}
	hrtimer_set_expires_range_ns(timer, expires, delta);
	return enqueue_hrtimer(timer, base, mode, was_queued);
}
#endif

/*
 * Moves a pending timer to its new level, or to the ordinary queue. In between
 * the order may be empty, and then ts_set_level() finds that the CPU need not
 * look at it. The irq_work corrects that.
 */
static void ts_requeue(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	bool matters;

	if (ts_is_in_place(timer, base))
		return;
	ts_dequeue(timer, base);
	if (!ts_enqueue(timer, base, &matters))
		ts_give_up(timer, base);
	per_cpu_ptr(&ts_stats, cpu_base->cpu)->moved++;
	if (ktime_sub(hrtimer_get_expires(timer), base->offset) < cpu_base->expires_next)
		irq_work_queue_on(&ts_cpu_of(cpu_base)->work, cpu_base->cpu);
}

/* Makes the pending timer of a task follow the task's priority and affinity. */
static noinline void ts_follow(struct task_struct *p)
{
	struct hrtimer_clock_base *base;

	smp_mb(); /* Pairs with ts_enqueue(). */
	base = READ_ONCE(p->timershield.base);
	if (likely(!base))
		return;
	raw_spin_lock(&base->cpu_base->lock);
	if (p->timershield.base == base)
		ts_requeue(p->timershield.timer, base);
	raw_spin_unlock(&base->cpu_base->lock);
}

/**
 * __timershield_prio_changed - follows a change of a task's effective priority
 * @p: the task; its run queue is locked
 * @running: whether the task runs
 */
void __timershield_prio_changed(struct task_struct *p, bool running)
{
	int cpu = task_cpu(p), level = running ? ts_level_of_running(p) : ts_level(p);
	struct ts_cpu *ts = per_cpu_ptr(&ts_cpus, cpu);
	int before = READ_ONCE(ts->level);

	if (running && ts->on && level != before) {
		if (cpu == smp_processor_id()) {
			WRITE_ONCE(ts->level, level);
			ts_look(before);
		} else {
			irq_work_queue_on(&ts->work, cpu);
		}
	}
	/* Timers of the softirq follow its thread. */
	if (ts->on && p == per_cpu(ksoftirqd, cpu) && cpu_online(cpu) &&
	    per_cpu(hrtimer_bases, cpu).softirq_expires_next != KTIME_MAX)
		irq_work_queue_on(&ts->work, cpu);
	ts_follow(p);
}

/**
 * __timershield_affinity_changed - follows a change of the CPUs that a task may run on
 * @p: the task; its run queue is locked
 */
void __timershield_affinity_changed(struct task_struct *p)
{
	ts_follow(p);
}

/* Makes a timer an ordinary one of a CPU, perhaps another one. Returns its expiry. */
static __cold ktime_t ts_evict(struct hrtimer *timer, struct hrtimer_cpu_base *to)
{
	struct hrtimer_clock_base *base = timer->base;

	ts_dequeue(timer, base);
	ts_give_up(timer, &to->clock_base[base->index]);
	return ktime_sub(hrtimer_get_expires(timer), base->offset);
}

/* Evicts at most this number of timers of a CPU. Returns the first expiry of these. */
static __cold ktime_t ts_drain_some(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to,
				    unsigned int most)
{
	struct ts_cpu *ts = ts_cpu_of(from);
	ktime_t first = KTIME_MAX;

	if (ts->tick->shield == TS_TICK)
		first = ts_evict(ts->tick, to);
	for (; ts->order.nr && most; most--) {
		struct hrtimer *timer = ts_timer_of(ts_earliest(from, TS_LEVEL_NORMAL).node);

		first = min(first, ts_evict(timer, to));
	}
	return first;
}

/* A CPU goes offline. Both bases are locked. */
static __cold noinline void ts_drain(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to)
{
	ts_drain_some(from, to, UINT_MAX);
}

/*
 * The number of pending timers that a switch of TimerShield handles at a time.
 * Others may take the lock in between, because a user can have any number of
 * timers.
 */
#define TS_CHUNK	8

/*
 * Makes all timers of a CPU ordinary ones. For timers that need not wait any
 * longer, the event device is programmed.
 */
static __cold void ts_empty_cpu(unsigned int cpu)
{
	struct hrtimer_cpu_base *cpu_base = &per_cpu(hrtimer_bases, cpu);
	struct ts_cpu *ts = per_cpu_ptr(&ts_cpus, cpu);
	unsigned long flags;
	bool more;

	do {
		raw_spin_lock_irqsave(&cpu_base->lock, flags);
		if (ts_drain_some(cpu_base, cpu_base, TS_CHUNK) < cpu_base->expires_next)
			irq_work_queue_on(&ts->work, cpu);
		more = ts->order.nr;
		raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
		/* Expired ones of these timers are served before more of them follow. */
		irq_work_sync(&ts->work);
	} while (more);
}

/* Whether a timer in the queue of its base should have a level. */
static __cold bool ts_has_level(struct hrtimer *timer, const struct hrtimer_clock_base *base)
{
	const struct task_struct *p = ts_sleeper(timer, base);

	if (!p)
		return timer == ts_tick_of(base->cpu_base);
	return !READ_ONCE(p->timershield.base) && ts_is_bound(p, base->cpu_base->cpu) &&
		(TS_HAS_ORDINARY || ts_level(p) != TS_LEVEL_NORMAL);
}

/* Gives a timer its level. A timer without a level stays where it is. */
static __cold void ts_take(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	bool matters;

	if (!ts_has_level(timer, base))
		return;
	ts_unqueue(timer, base);
	/* The task may have changed meanwhile. */
	if (!ts_enqueue(timer, base, &matters))
		ts_give_up(timer, base);
}

/* Does the same for some timers of a queue, from the cursor on. */
static __cold void ts_take_some(struct ts_cpu *ts, struct hrtimer_clock_base *base)
{
	int n;

	for (n = 0; ts->cursor && n < TS_CHUNK; n++) {
		struct hrtimer *timer = ts->cursor;

		ts_set_cursor(ts, ts_head_next(&timer->node));
		timer->shield = 0;
		ts_take(timer, base);
	}
}

/*
 * Gives levels to the pending timers of a queue. While others have the lock,
 * timers come and go, the one at the cursor included (ts_dequeue()). New timers
 * get their levels when they start. The walk ends, because it takes less time
 * for a timer than a start.
 */
static __cold void ts_fill_from(struct hrtimer_clock_base *base)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	unsigned long flags;
	bool more;

	raw_spin_lock_irqsave(&cpu_base->lock, flags);
	ts_set_cursor(ts, ts_head_first(&base->active));
	do {
		ts_take_some(ts, base);
		more = ts->cursor;
		raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
		raw_spin_lock_irqsave(&cpu_base->lock, flags);
	} while (more);
	raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
}

static __cold void ts_fill_cpu(unsigned int cpu)
{
	int clock;

	for (clock = 0; clock < TS_CLOCKS; clock++)
		ts_fill_from(&per_cpu(hrtimer_bases, cpu).clock_base[clock]);
	/* The event device may stand at a timer that is masked. */
	irq_work_queue_on(&per_cpu(ts_cpus, cpu).work, cpu);
}

/*
 * Switches levels on or off for timers that this CPU starts, and the delay for
 * timers of the softirq.
 */
static __cold void ts_turn(void *on)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);

	raw_spin_lock(&cpu_base->lock);
	ts->on = *(bool *)on;
	ts_refresh_level(ts);
	ts_program(cpu_base);
	raw_spin_unlock(&cpu_base->lock);
}

static __cold void ts_switch(bool on)
{
	unsigned int cpu;

	/* Offline CPUs have no timers, and were perhaps never set up. */
	for_each_possible_cpu(cpu) {
		if (!cpu_online(cpu))
			per_cpu(ts_cpus, cpu).on = on;
	}
	on_each_cpu(ts_turn, &on, 1);
	for_each_online_cpu(cpu) {
		if (on)
			ts_fill_cpu(cpu);
		else
			ts_empty_cpu(cpu);
	}
}

static DEFINE_MUTEX(ts_mutex);

bool timershield_get(void)
{
	return static_key_enabled(&timershield_on);
}

/**
 * timershield_set - switches TimerShield on or off, whatever timers are pending
 * @on: whether to switch it on
 *
 * The hooks are in force before the first timer has a level, and until after
 * the last one.
 */
void __cold timershield_set(bool on)
{
	mutex_lock(&ts_mutex);
	cpus_read_lock();
	if (on != timershield_get()) {
		if (on)
			static_branch_enable_cpuslocked(&timershield_on);
		ts_switch(on);
		if (!on)
			static_branch_disable_cpuslocked(&timershield_on);
	}
	cpus_read_unlock();
	mutex_unlock(&ts_mutex);
}

unsigned int timershield_pending(unsigned int cpu)
{
	return READ_ONCE(per_cpu(ts_cpus, cpu).order.nr);
}

void __init timershield_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(ts_cpus, cpu).tick = &tick_get_tick_sched(cpu)->sched_timer;
}

#endif /* CONFIG_TIMERSHIELD */
