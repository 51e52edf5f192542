// SPDX-License-Identifier: GPL-2.0-only
/*
 * TimerShield: timers with an interrupt later than their expiry, while the
 * interrupt would disturb. Included by shield.c.
 *
 * Timers of the softirq: on PREEMPT_RT the thread ksoftirqd serves them. It
 * cannot run while the CPU's level is above its own. These timers stay in their
 * bases. An interrupt that comes for another reason finds them expired.
 *
 * Without PREEMPT_RT, the timers that an ordinary task arms expire in the
 * interrupt. They are kept at the lowest level, and wait as long.
 *
 * The tick: a job of SCHED_TT in its window ends before the tick comes, if it
 * is short enough. The tick catches up afterwards. It is in no queue, because
 * the first timer of a queue decides whether timers started behind it get an
 * interrupt.
 */

/* The share of the fair class begins only when one of its tasks wakes up. */
#define TS_SOFT_DELAY	(50 * NSEC_PER_MSEC)

/* The work of the tick can wait for a few periods (kernel.timershield_tick_delay_us). */
unsigned int timershield_tick_delay_us = 4000;

/* timer->shield of the tick, and of the timer in a base's queue at which ts_fill_from() goes on */
#define TS_TICK		255
#define TS_CURSOR	254

static bool ts_masks_soft(const struct hrtimer_cpu_base *cpu_base, int level)
{
	const struct task_struct *p = per_cpu(ksoftirqd, cpu_base->cpu);

	return IS_ENABLED(CONFIG_PREEMPT_RT) && ts_cpu_of(cpu_base)->on && p && level > ts_level(p);
}

/* Returns when to have an interrupt for the first timer of the softirq, at a level. */
static ktime_t ts_soft(const struct hrtimer_cpu_base *cpu_base, int level)
{
	ktime_t expires = cpu_base->softirq_expires_next;

	return ts_masks_soft(cpu_base, level) ? ktime_add_safe(expires, TS_SOFT_DELAY) : expires;
}

static noinline ktime_t ts_soft_now(const struct hrtimer_cpu_base *cpu_base)
{
	return ts_soft(cpu_base, READ_ONCE(ts_cpu_of(cpu_base)->level));
}

static struct hrtimer *ts_tick_of(const struct hrtimer_cpu_base *cpu_base)
{
	return ts_cpu_of(cpu_base)->tick;
}

/* Returns when to have an interrupt for the tick, at a level. The tick is on CLOCK_MONOTONIC. */
static noinline ktime_t ts_tick(const struct hrtimer_cpu_base *cpu_base, int level)
{
	const struct hrtimer *tick = ts_tick_of(cpu_base);
	ktime_t expires = hrtimer_get_expires(tick);

	if (tick->shield != TS_TICK)
		return KTIME_MAX;
	if (level != TS_LEVEL_WINDOW)
		return expires;
	return ktime_add_safe(expires, (u64)READ_ONCE(timershield_tick_delay_us) * NSEC_PER_USEC);
}

/* Keeps the tick out of its queue. Returns false for any other timer. */
static bool ts_keep_tick(struct hrtimer *timer, const struct hrtimer_cpu_base *cpu_base,
			 bool *matters)
{
	if (timer != ts_tick_of(cpu_base))
		return false;
	timer->shield = TS_TICK;
	ts_set_queued(timer);
	*matters = cpu_base->expires_next >
		ts_tick(cpu_base, READ_ONCE(ts_cpu_of(cpu_base)->level));
	return true;
}

#define TS_HAS_ORDINARY	(!IS_ENABLED(CONFIG_PREEMPT_RT))

/*
 * Whether a timer that is being started belongs to a system call of an ordinary
 * task, such as timer_settime(), timerfd_settime() or setitimer(). Timers that
 * restart themselves in the interrupt do not. Timers that are started with
 * softirqs disabled do not either: they may be the network's, for all tasks.
 */
static bool ts_is_ordinary(const struct hrtimer *timer, const struct hrtimer_clock_base *base)
{
	return TS_HAS_ORDINARY && !timer->is_hard && base->index < TS_CLOCKS &&
		!in_interrupt() && !(current->flags & PF_KTHREAD) &&
		ts_level_of(current) == TS_LEVEL_NORMAL &&
		ts_is_bound(current, base->cpu_base->cpu);
}

/* Returns the first timer of those at the lowest level. */
static struct ts_next ts_first_ordinary(struct hrtimer_cpu_base *cpu_base)
{
	struct ts_order *order = &ts_cpu_of(cpu_base)->order;
	struct ts_next first = { NULL, TS_NEVER, -1 };
	int clock;

	for (clock = 0; clock < TS_CLOCKS; clock++) {
		struct ts_node *node = ts_first_of(&order->of[clock], TS_LEVEL_NORMAL);
		ktime_t expires;

		if (!node)
			continue;
		expires = node->expires - cpu_base->clock_base[clock].offset;
		if (expires < first.expires)
			first = (struct ts_next){ node, expires, TS_LEVEL_NORMAL };
	}
	return first;
}

/* Returns when to have an interrupt for it, at another level. */
static ktime_t ts_ordinary(struct hrtimer_cpu_base *cpu_base, int level)
{
	if (!TS_HAS_ORDINARY || level == TS_LEVEL_NORMAL)
		return KTIME_MAX;
	return ktime_add_safe(max(ts_first_ordinary(cpu_base).expires, 0), TS_SOFT_DELAY);
}

/* Returns when to have an interrupt for any of them. */
static noinline ktime_t ts_late(struct hrtimer_cpu_base *cpu_base, int level)
{
	return min3(ts_soft(cpu_base, level), ts_tick(cpu_base, level),
		    ts_ordinary(cpu_base, level));
}

/**
 * __timershield_tick - accounts for a tick that was due several times
 * @times: how often; the tick itself accounts for one of them
 *
 * While the tick waited, a job was running. The kernel did not sample whether
 * that was in user mode. Like cputime_adjust() for tasks without samples, this
 * counts it as user time.
 */
void __timershield_tick(u64 times)
{
	if (this_cpu_read(ts_cpus.held) && !vtime_accounting_enabled_this_cpu())
		kcpustat_this_cpu->cpustat[CPUTIME_USER] += (times - 1) * TICK_NSEC;
}
