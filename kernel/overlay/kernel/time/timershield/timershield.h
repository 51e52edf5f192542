/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: the hooks of hrtimer.c, which includes shield.c at its end.
 *
 * The functions that the hooks call are never inlined. Otherwise the functions
 * of hrtimer.c would save registers for them, and grow until the compiler no
 * longer inlines them into each other. Users with the switch off would pay for
 * that. A patched-out branch also counts as some ten instructions there.
 * timershield_dequeue() therefore has a plain test.
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_H
#define _KERNEL_TIME_TIMERSHIELD_H

#include <linux/jump_label.h>
#include <linux/macrotick_linux.h>

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
 * Returns whether the timer is kept here, and not in the queue of its base.
 * Sets @matters if the event device must be programmed for it.
 */
static __always_inline bool timershield_enqueue(struct hrtimer *timer,
						struct hrtimer_clock_base *base, bool *matters)
{
	return static_branch_unlikely(&timershield_on) && ts_enqueue(timer, base, matters);
}

/* Returns whether the timer was kept here: with the switch off, no timer has a level. */
static __always_inline bool timershield_dequeue(struct hrtimer *timer,
						struct hrtimer_clock_base *base)
{
	if (likely(!timer->shield))
		return false;
	ts_dequeue(timer, base);
	return true;
}

#if MT_LINUX_7
static noinline bool ts_restart(struct hrtimer *timer, struct hrtimer_clock_base *base,
				enum hrtimer_mode mode, ktime_t expires, u64 delta);

/*
 * Hook of remove_and_enqueue_same_base(), which may leave a timer where it is in
 * the queue of its base: the timer is or may be kept here.
 */
static __always_inline bool timershield_restarts(const struct hrtimer *timer)
{
	return static_branch_unlikely(&timershield_on) || unlikely(timer->shield);
}

static __always_inline bool timershield_restart(struct hrtimer *timer,
						struct hrtimer_clock_base *base,
						enum hrtimer_mode mode, ktime_t expires, u64 delta)
{
	return ts_restart(timer, base, mode, expires, delta);
}
#endif

/* Returns the earlier of @expires and the expiry of the first timer here that matters. */
static __always_inline ktime_t timershield_next(struct hrtimer_cpu_base *cpu_base, ktime_t expires)
{
	return static_branch_unlikely(&timershield_on) ? ts_next(cpu_base, expires) : expires;
}

/* Returns the expiry of the first timer kept here, whether or not it matters at present. */
static __always_inline ktime_t timershield_soonest(struct hrtimer_cpu_base *cpu_base)
{
	return static_branch_unlikely(&timershield_on) ? ts_soonest(cpu_base) : KTIME_MAX;
}

/*
 * Returns the earlier of @expires_next and the expiry of the first timer here
 * that matters. That timer becomes the CPU's next timer.
 */
static __always_inline ktime_t timershield_next_event(struct hrtimer_cpu_base *cpu_base,
						      ktime_t expires_next)
{
	if (static_branch_unlikely(&timershield_on))
		return ts_next_event(cpu_base, expires_next);
	return expires_next;
}

/* Returns when to program the event device for the first timer of the softirq, at @expires. */
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

/* A CPU goes offline: its timers become ordinary timers of another CPU. */
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

static inline bool timershield_restarts(const struct hrtimer *timer) { return false; }

static inline bool timershield_restart(struct hrtimer *timer, struct hrtimer_clock_base *base,
				       enum hrtimer_mode mode, ktime_t expires, u64 delta)
{
	return false;
}

#endif

#endif /* _KERNEL_TIME_TIMERSHIELD_H */
