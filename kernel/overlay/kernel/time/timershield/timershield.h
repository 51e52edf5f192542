/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: the hooks of hrtimer.c, which includes shield.c at its end.
 *
 * What they call is never inlined: hrtimer.c's functions would save registers
 * for it and grow until the compiler no longer inlines them into each other,
 * which costs whoever has the switch off. A patched-out branch counts as some
 * ten instructions there, too; hence the plain test in timershield_dequeue().
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_H
#define _KERNEL_TIME_TIMERSHIELD_H

#include <linux/jump_label.h>

#ifdef CONFIG_TIMERSHIELD

DECLARE_STATIC_KEY_FALSE(timershield_on);

static noinline bool ts_enqueue(struct hrtimer *timer, struct hrtimer_clock_base *base,
				bool *matters);
static noinline void ts_dequeue(struct hrtimer *timer, struct hrtimer_clock_base *base);
static noinline ktime_t ts_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires);
static noinline ktime_t ts_next_event(struct hrtimer_cpu_base *cpu_base, ktime_t expires_next);
static noinline ktime_t ts_soonest(struct hrtimer_cpu_base *cpu_base);
static noinline ktime_t ts_soft_now(const struct hrtimer_cpu_base *cpu_base);
static noinline void ts_expire(struct hrtimer_cpu_base *cpu_base, ktime_t now, unsigned long flags);
static noinline void ts_drain(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to);

/*
 * Whether the timer is kept here, and not in the queue of its base, and then
 * whether it is one to program the event device for.
 */
static __always_inline bool timershield_enqueue(struct hrtimer *timer,
						struct hrtimer_clock_base *base, bool *matters)
{
	return static_branch_unlikely(&timershield_on) && ts_enqueue(timer, base, matters);
}

/* Whether it was kept here: without the switch none has a level. */
static __always_inline bool timershield_dequeue(struct hrtimer *timer,
						struct hrtimer_clock_base *base)
{
	if (likely(!timer->shield))
		return false;
	ts_dequeue(timer, base);
	return true;
}

/* The earlier of @expires and the first timer kept here that matters. */
static __always_inline ktime_t timershield_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	return static_branch_unlikely(&timershield_on) ? ts_next(cpu_base, expires) : expires;
}

/* When the first timer kept here expires, whether or not it matters now. */
static __always_inline ktime_t timershield_soonest(struct hrtimer_cpu_base *cpu_base)
{
	return static_branch_unlikely(&timershield_on) ? ts_soonest(cpu_base) : KTIME_MAX;
}

/* The earlier of @expires_next and the first that matters, which becomes the CPU's next timer. */
static __always_inline ktime_t timershield_next_event(struct hrtimer_cpu_base *cpu_base,
						      ktime_t expires_next)
{
	if (static_branch_unlikely(&timershield_on))
		return ts_next_event(cpu_base, expires_next);
	return expires_next;
}

/* When to program the event device for what expires first in the softirq, at @expires. */
static __always_inline ktime_t timershield_soft(const struct hrtimer_cpu_base *cpu_base,
						ktime_t expires)
{
	return static_branch_unlikely(&timershield_on) ? ts_soft_now(cpu_base) : expires;
}

static __always_inline void timershield_expire(struct hrtimer_cpu_base *cpu_base, ktime_t now,
					       unsigned long flags)
{
	if (static_branch_unlikely(&timershield_on))
		ts_expire(cpu_base, now, flags);
}

/* A CPU goes offline: what it has becomes ordinary timers of another one. */
static inline void timershield_migrate(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to)
{
	if (static_branch_unlikely(&timershield_on))
		ts_drain(from, to);
}

#else

static inline bool timershield_enqueue(struct hrtimer *timer, struct hrtimer_clock_base *base,
				       bool *matters)
{
	return false;
}

static inline bool timershield_dequeue(struct hrtimer *timer, struct hrtimer_clock_base *base)
{
	return false;
}

static inline ktime_t timershield_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	return expires;
}

static inline ktime_t timershield_next_event(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	return expires;
}

static inline ktime_t timershield_soonest(struct hrtimer_cpu_base *cpu_base)
{
	return KTIME_MAX;
}

static inline ktime_t timershield_soft(const struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	return expires;
}

static inline void timershield_expire(struct hrtimer_cpu_base *cpu_base, ktime_t now,
				      unsigned long flags)
{
}

static inline void timershield_migrate(struct hrtimer_cpu_base *from, struct hrtimer_cpu_base *to)
{
}

#endif

#endif /* _KERNEL_TIME_TIMERSHIELD_H */
