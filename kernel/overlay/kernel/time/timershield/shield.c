// SPDX-License-Identifier: GPL-2.0-only
/*
 * TimerShield: the timers of less important tasks wait. Included by hrtimer.c.
 *
 * The timer of a sleep is kept in its CPU's order (order.h) instead of the
 * queue of its base when it has a level: when its task is a real-time one and
 * bound to that CPU, so that it cannot run elsewhere while something more
 * important runs there. Without PREEMPT_RT ordinary tasks' timers are kept there,
 * too, at the lowest level (late.c). All other timers, the scheduler's among
 * them, are never masked and stay where they always were.
 *
 * A CPU has a level, too: that of what runs there, or is about to. Timers of
 * lower levels are masked: the event device is not programmed for them, and
 * they are not served when they have expired. The CPU's level
 *
 *   - follows the task that __schedule() picks, and changes of the priority of
 *     the running one,
 *   - rises to the level of a timer that was served and had something woken up,
 *     or to that of the thread whose window begins, so that the rest waits until
 *     __schedule() has decided.
 *
 * Where a lower level lets timers through that have expired, an irq_work
 * serves them, all in one interrupt.
 *
 * For the tick, and for timers that expire in the softirq, an interrupt comes
 * later at some levels (late.c).
 *
 * Locking: run queue, then hrtimer_cpu_base. A CPU's level is changed by that
 * CPU only, with interrupts off; the order is protected by the base's lock. A
 * task has at most one timer that has a level, task->timershield.
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
	int		level;	/* timers below it are masked */
	bool		on;	/* timers are taken into the order */
	bool		held;	/* the tick may have waited for a job to end */
	struct hrtimer	*cursor;	/* where ts_fill() goes on, in the queue of its base */
	unsigned int	seq;	/* of the clocks' offsets that the order has */
	struct hrtimer	*tick;
	struct irq_work	work;	/* have another look at the level, serve, program the device */
};

static DEFINE_PER_CPU(struct ts_cpu, ts_cpus);
DEFINE_PER_CPU(struct ts_stats, ts_stats);
DEFINE_STATIC_KEY_FALSE(timershield_on);

static struct ts_cpu *ts_cpu_of(const struct hrtimer_cpu_base *cpu_base)
{
	return per_cpu_ptr(&ts_cpus, cpu_base->cpu);
}

/* By its effective priority, unless windows or servers make it more important. */
static int ts_level_of(const struct task_struct *p)
{
	int prio = READ_ONCE(p->prio), level = MAX_RT_PRIO - prio;

	if (prio >= MAX_RT_PRIO)
		level = TS_LEVEL_NORMAL;
	else if (prio < 0)
		level = TS_LEVEL_DEADLINE;
	return IS_ENABLED(CONFIG_MACROTICK) ? max(level, macrotick_level(p)) : level;
}

/* Of what a CPU runs: what it was picked for decides, whatever class it has. */
static int ts_level_of_running(const struct task_struct *p)
{
	int prio = READ_ONCE(p->prio), level;

	level = IS_ENABLED(CONFIG_MACROTICK) ?
		macrotick_running_level(task_cpu(p)) : TS_LEVEL_NORMAL;
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

/* The task of a timer that can have a level, or NULL. */
static struct task_struct *ts_sleeper(struct hrtimer *timer, const struct hrtimer_clock_base *base)
{
	if (timer->function != hrtimer_wakeup || base->index >= TS_CLOCKS)
		return NULL;
	return container_of(timer, struct hrtimer_sleeper, timer)->task;
}

static noinline void ts_set_offsets(struct ts_cpu *ts, const struct hrtimer_cpu_base *cpu_base)
{
	int clock;

	ts->seq = cpu_base->clock_was_set_seq;
	for (clock = 0; clock < TS_CLOCKS; clock++)
		ts_order_set_offset(&ts->order, clock, cpu_base->clock_base[clock].offset);
}

/* A clock may have been set. A leap second shifts CLOCK_REALTIME without a new sequence number. */
static void ts_follow_clocks(struct ts_cpu *ts, const struct hrtimer_cpu_base *cpu_base)
{
	if (unlikely(ts->seq != cpu_base->clock_was_set_seq ||
		     ts->order.offset[HRTIMER_BASE_REALTIME] !=
		     cpu_base->clock_base[HRTIMER_BASE_REALTIME].offset))
		ts_set_offsets(ts, cpu_base);
}

static __always_inline void ts_add(struct hrtimer *timer, struct hrtimer_clock_base *base,
				   int level, bool *matters)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	struct ts_cpu *ts = ts_cpu_of(cpu_base);

	ts_follow_clocks(ts, cpu_base);
	timer->shield = 1 + level;
	WRITE_ONCE(timer->state, HRTIMER_STATE_ENQUEUED);
	*matters = (level >= READ_ONCE(ts->level) ||
		    (TS_HAS_ORDINARY && level == TS_LEVEL_NORMAL)) &&
		ktime_sub(timer->node.expires, base->offset) < cpu_base->expires_next;
	ts_order_add(&ts->order, &timer->node, level, base->index);
}

/* Whether the timer is one that an ordinary task arms, and is kept at the lowest level. */
static bool ts_keep_ordinary(struct hrtimer *timer, struct hrtimer_clock_base *base, bool *matters)
{
	if (!ts_is_ordinary(timer, base))
		return false;
	ts_add(timer, base, TS_LEVEL_NORMAL, matters);
	return true;
}

/*
 * The level of a task's sleep, whose timer becomes the one of the task that has
 * a level; negative if it has none.
 */
static __always_inline int ts_claim(struct task_struct *p, struct hrtimer *timer,
				    struct hrtimer_clock_base *base)
{
	int level;

	/* A barrier, too: ts_follow() sees the timer, or what follows sees what had it called. */
	if (cmpxchg(&p->timershield.base, NULL, base))
		return -1;
	level = ts_level_of(p);
	if ((level == TS_LEVEL_NORMAL && !TS_HAS_ORDINARY) ||
	    !ts_is_bound(p, base->cpu_base->cpu)) {
		WRITE_ONCE(p->timershield.base, NULL);
		return -1;
	}
	p->timershield.timer = timer;
	return level;
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
	level = ts_claim(p, timer, base);
	if (level < 0)
		return false;
	ts_add(timer, base, level, matters);
	return true;
}

/* The walk over a queue goes on at the timer that comes next. */
static void ts_set_cursor(struct ts_cpu *ts, struct timerqueue_node *node)
{
	ts->cursor = node ? container_of(node, struct hrtimer, node) : NULL;
	if (ts->cursor)
		ts->cursor->shield = TS_CURSOR;
}

/* Whether the timer was kept here. */
static noinline bool ts_dequeue(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	struct ts_cpu *ts = ts_cpu_of(base->cpu_base);
	u8 shield = timer->shield;

	timer->shield = 0;
	if (shield == TS_TICK)
		return true;
	if (shield == TS_CURSOR) {
		ts_set_cursor(ts, timerqueue_iterate_next(&timer->node));
		return false;
	}
	ts_order_del(&ts->order, &timer->node, shield - 1, base->index);
	if (!TS_HAS_ORDINARY || timer->function == hrtimer_wakeup)
		WRITE_ONCE(container_of(timer, struct hrtimer_sleeper,
					timer)->task->timershield.base, NULL);
	return true;
}

/* The level at or above one whose timer expires first. */
static noinline unsigned int ts_earliest(const struct ts_cpu *ts, int level)
{
	return ts_order_earliest(&ts->order, level);
}

static noinline ktime_t ts_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	ktime_t first;

	ts_follow_clocks(ts, cpu_base);
	first = ts->order.earliest[ts_earliest(ts, READ_ONCE(ts->level))];

	return min(expires, max(first, 0));
}

/* When the first of all expires, whatever the CPU's level is or becomes meanwhile. */
static noinline ktime_t ts_soonest(struct hrtimer_cpu_base *cpu_base)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);

	ts_follow_clocks(ts, cpu_base);
	return ts->order.soonest;
}

static struct hrtimer *ts_first(struct ts_cpu *ts, int level)
{
	struct timerqueue_node *node = ts->order.first[level];

	return node ? container_of(node, struct hrtimer, node) : NULL;
}

static noinline ktime_t ts_next_event(struct hrtimer_cpu_base *cpu_base, ktime_t expires_next)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	int level = READ_ONCE(ts->level);
	ktime_t tick = ts_tick(cpu_base, level), ordinary;

	ts_follow_clocks(ts, cpu_base);
	ordinary = ts_ordinary(ts, level);
	if (tick < expires_next) {
		cpu_base->next_timer = ts->tick;
		expires_next = tick;
	}
	if (ordinary < expires_next) {
		cpu_base->next_timer = ts_first(ts, TS_LEVEL_NORMAL);
		expires_next = ordinary;
	}
	level = ts_earliest(ts, level);
	if (ts->order.earliest[level] >= expires_next)
		return expires_next;
	cpu_base->next_timer = ts_first(ts, level);
	return max(ts->order.earliest[level], 0);
}

/* After so many timers of a level the clock is read again: something more important may be due. */
#define TS_BATCH	4

/* Serves expired timers of a level, which has one, a few of them. Whether those were all. */
static bool ts_expire_level(struct hrtimer_cpu_base *cpu_base, int level, ktime_t now,
			    unsigned long flags)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	int n;

	for (n = 0; n < TS_BATCH; n++) {
		struct hrtimer *timer = container_of(ts->order.first[level], struct hrtimer, node);
		ktime_t basenow = ktime_add(now, timer->base->offset);

		this_cpu_inc(ts_stats.served);
		__run_hrtimer(cpu_base, timer->base, timer, &basenow, flags);
		if (ts->order.earliest[level] > now)
			return true;
	}
	return false;
}

/* The highest level with an expired timer that does not wait, or -1. */
static int ts_due(struct ts_cpu *ts, ktime_t now)
{
	int level = ts_order_expired(&ts->order, now);

	if (level >= ts->level)
		return level;
	return ts_ordinary(ts, ts->level) <= now ? TS_LEVEL_NORMAL : -1;
}

/*
 * Serves expired timers, those of the highest level first. Once that has had
 * something woken up, lower levels wait for the next __schedule().
 */
static noinline void ts_expire_order(struct hrtimer_cpu_base *cpu_base, ktime_t now,
				     unsigned long flags)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	int level;

	ts_follow_clocks(ts, cpu_base);
	while ((level = ts_due(ts, now)) >= 0) {
		bool all = ts_expire_level(cpu_base, level, now, flags);

		/* A window that has begun meanwhile may be above it. */
		if (need_resched() && level > ts->level)
			WRITE_ONCE(ts->level, level);
		if (all)
			continue;
		/* They can be many, and the beginning of a window does not wait for them. */
		now = ktime_get();
		__hrtimer_run_queues(cpu_base, now, flags, HRTIMER_ACTIVE_HARD);
	}
	if (need_resched() && ts->order.soonest <= now)
		this_cpu_inc(ts_stats.stopped);
}

/* The tick accounts for what the timer's interrupt came into: it is served in no other. */
static noinline void ts_expire(struct hrtimer_cpu_base *cpu_base, ktime_t now, unsigned long flags)
{
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	struct hrtimer *tick = ts->tick;

	ts_expire_order(cpu_base, now, flags);
	if (now < ts_tick(cpu_base, ts->level))
		return;
	ts->held |= ts->level == TS_LEVEL_WINDOW;
	__run_hrtimer(cpu_base, tick->base, tick, &now, flags);
	ts->held = false;
}

/* What was masked expires first, and has done so already or will do so before anything else. */
static noinline void ts_unmask(struct hrtimer_cpu_base *cpu_base, struct ts_cpu *ts)
{
	ktime_t first;

	raw_spin_lock(&cpu_base->lock);
	first = ts->order.earliest[ts_earliest(ts, ts->level)];
	/* A CPU that goes offline has nothing to serve, and takes no irq_work any longer. */
	if (min(first, ts_late(cpu_base, ts->level)) < cpu_base->expires_next && cpu_base->online) {
		if (first <= ktime_get())
			irq_work_queue(&ts->work);
		else
			hrtimer_force_reprogram(cpu_base, 1);
	}
	raw_spin_unlock(&cpu_base->lock);
}

/* The event device may be programmed for a timer that is masked now, or that can wait. */
static noinline void ts_mask(struct hrtimer_cpu_base *cpu_base, struct ts_cpu *ts, int before)
{
	ktime_t first;
	int level;

	raw_spin_lock(&cpu_base->lock);
	level = ts_earliest(ts, before);
	first = ts->order.earliest[level];
	if (((level < ts->level && first != TS_NEVER && max(first, 0) == cpu_base->expires_next) ||
	     (ts_late(cpu_base, before) == cpu_base->expires_next &&
	      ts_late(cpu_base, ts->level) != cpu_base->expires_next)) && cpu_base->online) {
		this_cpu_inc(ts_stats.masked);
		trace_timershield_masked(level, ts->level, cpu_base->expires_next);
		hrtimer_force_reprogram(cpu_base, 1);
	}
	raw_spin_unlock(&cpu_base->lock);
}

/* This CPU has changed its level. */
static noinline void ts_look(int before)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);

	ts->held |= before == TS_LEVEL_WINDOW;
	if (ts->level < before)
		ts_unmask(cpu_base, ts);
	else
		ts_mask(cpu_base, ts, before);
}

/*
 * Whether the event device may stay as it is at another level: at a lower one, if
 * nothing expires before what it is programmed for; at a higher one, if it is
 * programmed for nothing of the order, or for what is not masked then either; and
 * if neither the softirq nor the tick has a say. That is found without the lock:
 * another CPU may be changing the order, but if what it adds or moves expires
 * before what the device is programmed for, it has this CPU's irq_work look again
 * (ts_requeue()), and else the device's interrupt comes first.
 */
static __always_inline bool ts_stays(int before, int level)
{
	ktime_t soonest = this_cpu_read(ts_cpus.order.soonest);
	ktime_t expires_next = this_cpu_read(hrtimer_bases.expires_next);

	if (this_cpu_read(hrtimer_bases.softirq_expires_next) <= expires_next)
		return false;
	if (level < before)
		return soonest >= expires_next && before != TS_LEVEL_WINDOW;
	if (level == TS_LEVEL_WINDOW)
		return false;
	return soonest > expires_next || (int)this_cpu_read(ts_cpus.order.soonest_level) >= level;
}

/* This CPU runs something, perhaps of another level. */
static __always_inline void ts_set_level(int level)
{
	int before = this_cpu_read(ts_cpus.level);

	if (level == before)
		return;
	this_cpu_write(ts_cpus.level, level);
	if (!ts_stays(before, level))
		ts_look(before);
}

/**
 * __timershield_run - this CPU is going to run a task
 * @next: the task
 *
 * With the run queue locked. It may be what ran before: the level can have
 * risen for something that was woken up and does not run after all.
 */
void __timershield_run(struct task_struct *next)
{
	/* Amid the switch, too: an empty order has nothing to mask. */
	ts_set_level(ts_level_of_running(next));
}

/**
 * __timershield_expect - a CPU is going to run a task
 * @next: the task, on that CPU's run queue, which is locked
 *
 * If what found that out is a timer of this CPU, timers below the task wait
 * although they have expired at the same time.
 */
void __timershield_expect(struct task_struct *next)
{
	int level = ts_level_of(next);

	if (task_cpu(next) == smp_processor_id() && this_cpu_ptr(&hrtimer_bases)->in_hrtirq &&
	    level > this_cpu_read(ts_cpus.level))
		this_cpu_write(ts_cpus.level, level);
}

static void ts_trace_deferred(struct ts_cpu *ts, ktime_t now)
{
	int level = ts_order_expired(&ts->order, now);

	if (level >= ts->level)
		trace_timershield_deferred(level, ts->level, ts->order.earliest[level]);
}

static void ts_refresh_level(struct ts_cpu *ts)
{
	ts->held |= ts->level == TS_LEVEL_WINDOW;
	WRITE_ONCE(ts->level, ts_level_of_running(current));
}

/* Timers have been let through, or something was changed from another CPU. */
static void ts_work(struct irq_work *work)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);
	unsigned long flags;
	u64 served;
	ktime_t now;

	raw_spin_lock_irqsave(&cpu_base->lock, flags);
	/* If irq_work has no interrupt of its own the tick is serving, and looks at the rest. */
	if (unlikely(!cpu_base->online || cpu_base->in_hrtirq)) {
		raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
		return;
	}
	if (!need_resched())
		ts_refresh_level(ts);
	now = hrtimer_update_base(cpu_base);
	served = __this_cpu_read(ts_stats.served);
	ts_trace_deferred(ts, now);
	/* What callbacks start must not program the device: that is done below. */
	cpu_base->in_hrtirq = 1;
	ts_expire_order(cpu_base, now, flags);
	cpu_base->in_hrtirq = 0;
	this_cpu_add(ts_stats.deferred, __this_cpu_read(ts_stats.served) - served);
	hrtimer_force_reprogram(cpu_base, 1);
	raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
}

/* A timer becomes an ordinary one. */
static void ts_give_up(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	timer->base = base;
	base->cpu_base->active_bases |= 1 << base->index;
	timerqueue_add(&base->active, &timer->node);
}

static bool ts_is_in_place(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	const struct task_struct *p = ts_sleeper(timer, base);

	return timer->shield == 1 + ts_level_of(p) && ts_is_bound(p, base->cpu_base->cpu);
}

/*
 * The level of a pending timer may be another one, or it must not have one any
 * longer. In between the order may be empty, and the CPU find that it need not
 * look at it (ts_stays()): then there is an irq_work for what has moved.
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

/* The pending timer of a task follows the task's priority and affinity. */
static void ts_follow(struct task_struct *p)
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
 * __timershield_prio_changed - the effective priority of a task may have changed
 * @p: the task; its run queue is locked
 * @running: whether it runs
 */
void __timershield_prio_changed(struct task_struct *p, bool running)
{
	int cpu = task_cpu(p), level = running ? ts_level_of_running(p) : ts_level_of(p);
	struct ts_cpu *ts = per_cpu_ptr(&ts_cpus, cpu);

	if (running && ts->on && level != READ_ONCE(ts->level)) {
		if (cpu == smp_processor_id())
			ts_set_level(level);
		else
			irq_work_queue_on(&ts->work, cpu);
	}
	/* Timers of the softirq follow its thread. */
	if (ts->on && p == per_cpu(ksoftirqd, cpu) && cpu_online(cpu) &&
	    per_cpu(hrtimer_bases, cpu).softirq_expires_next != KTIME_MAX)
		irq_work_queue_on(&ts->work, cpu);
	ts_follow(p);
}

/**
 * __timershield_affinity_changed - the CPUs that a task may run on have changed
 * @p: the task; its run queue is locked
 */
void __timershield_affinity_changed(struct task_struct *p)
{
	ts_follow(p);
}

/* One that is pending becomes an ordinary one of a CPU, maybe the same. Returns when it expires. */
static ktime_t ts_evict(struct hrtimer *timer, struct hrtimer_cpu_base *to)
{
	struct hrtimer_clock_base *base = timer->base;

	ts_dequeue(timer, base);
	ts_give_up(timer, &to->clock_base[base->index]);
	return ktime_sub(hrtimer_get_expires(timer), base->offset);
}

/* Up to so many timers of a CPU become ordinary ones of a CPU. Returns when the first expires. */
static ktime_t ts_drain_some(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to,
			     unsigned int most)
{
	struct ts_cpu *ts = ts_cpu_of(from);
	ktime_t first = KTIME_MAX;

	if (ts->tick->shield == TS_TICK)
		first = ts_evict(ts->tick, to);
	for (; ts->order.nr && most; most--)
		first = min(first, ts_evict(ts_first(ts, ts->order.soonest_level), to));
	return first;
}

/* A CPU goes offline. Both are locked. */
static noinline void ts_drain(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to)
{
	ts_drain_some(from, to, UINT_MAX);
}

/*
 * So many pending timers are looked at in one go when the switch is turned,
 * and others may have the lock in between: a user can have any number of them.
 */
#define TS_CHUNK	8

/*
 * A CPU's timers become ordinary ones. Those that had to wait, and need not any
 * longer, have the event device programmed.
 */
static void ts_empty_cpu(unsigned int cpu)
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
		/* Whatever has expired of these is served before there are more. */
		irq_work_sync(&ts->work);
	} while (more);
}

/* A timer in the queue of its base gets a level, if it is one that has one. Else it stays. */
static void ts_take(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	struct task_struct *p = ts_sleeper(timer, base);
	bool is_tick = timer == ts_tick_of(base->cpu_base), matters;
	int level = p ? ts_claim(p, timer, base) : -1;

	if (level < 0 && !is_tick)
		return;
	if (!timerqueue_del(&base->active, &timer->node))
		base->cpu_base->active_bases &= ~(1 << base->index);
	if (is_tick)
		ts_keep_tick(timer, base->cpu_base, &matters);
	else
		ts_add(timer, base, level, &matters);
}

/* The same with some of a queue, from the cursor on. */
static void ts_take_some(struct ts_cpu *ts, struct hrtimer_clock_base *base)
{
	int n;

	for (n = 0; ts->cursor && n < TS_CHUNK; n++) {
		struct hrtimer *timer = ts->cursor;

		ts_set_cursor(ts, timerqueue_iterate_next(&timer->node));
		timer->shield = 0;
		ts_take(timer, base);
	}
}

/*
 * The pending timers of a queue get levels. While others have the lock timers
 * come and go, the one at the cursor, too (ts_dequeue()). What comes was looked
 * at when it was started. The walk comes to an end: it takes less for a timer
 * than starting it.
 */
static void ts_fill_from(struct hrtimer_clock_base *base)
{
	struct hrtimer_cpu_base *cpu_base = base->cpu_base;
	struct ts_cpu *ts = ts_cpu_of(cpu_base);
	unsigned long flags;
	bool more;

	raw_spin_lock_irqsave(&cpu_base->lock, flags);
	ts_set_cursor(ts, timerqueue_getnext(&base->active));
	do {
		ts_take_some(ts, base);
		more = ts->cursor;
		raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
		raw_spin_lock_irqsave(&cpu_base->lock, flags);
	} while (more);
	raw_spin_unlock_irqrestore(&cpu_base->lock, flags);
}

static void ts_fill_cpu(unsigned int cpu)
{
	int clock;

	for (clock = 0; clock < TS_CLOCKS; clock++)
		ts_fill_from(&per_cpu(hrtimer_bases, cpu).clock_base[clock]);
	/* The event device may be programmed for what is masked. */
	irq_work_queue_on(&per_cpu(ts_cpus, cpu).work, cpu);
}

/*
 * From now on timers that this CPU starts have levels, or do not; those of the
 * softirq wait, or do not.
 */
static void ts_turn(void *on)
{
	struct hrtimer_cpu_base *cpu_base = this_cpu_ptr(&hrtimer_bases);
	struct ts_cpu *ts = this_cpu_ptr(&ts_cpus);

	raw_spin_lock(&cpu_base->lock);
	ts->on = *(bool *)on;
	ts_refresh_level(ts);
	hrtimer_force_reprogram(cpu_base, 0);
	raw_spin_unlock(&cpu_base->lock);
}

static void ts_switch(bool on)
{
	unsigned int cpu;

	/* Those that are offline have no timers, and were perhaps never set up. */
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
 * timershield_set - switch it on or off, whatever timers are pending
 * @on: whether it is to be on
 *
 * The hooks are in force before the first timer has a level, and until after
 * the last one.
 */
void timershield_set(bool on)
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

	for_each_possible_cpu(cpu) {
		struct ts_cpu *ts = per_cpu_ptr(&ts_cpus, cpu);

		ts_order_init(&ts->order);
		ts->tick = &tick_get_tick_sched(cpu)->sched_timer;
		ts->work = IRQ_WORK_INIT_HARD(ts_work);
	}
}

#endif /* CONFIG_TIMERSHIELD */
