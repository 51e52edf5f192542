/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: timers of less important tasks wait while a more important one
 * runs.
 *
 * The level of a task, and of the timer of its sleep:
 *
 *	  0		SCHED_OTHER and below
 *	  2 .. 100	SCHED_FIFO and SCHED_RR, priorities 1 to 99
 *	101		SCHED_DEADLINE: these tasks do not shield themselves from
 *			each other's timers
 *	102 .. 200	SCHED_DS, groups of the priorities 1 to 99: those of equal
 *			priority do not either
 *	201		a thread of SCHED_TT in the window of a pool
 *	202		one in another window, whose job not even the tick disturbs
 *
 * What counts is the effective priority, inherited ones included.
 */
#ifndef _LINUX_TIMERSHIELD_H
#define _LINUX_TIMERSHIELD_H

#include <linux/compiler.h>
#include <linux/types.h>

struct hrtimer;
struct hrtimer_clock_base;
struct sched_class;

#define TS_LEVEL_NORMAL		0
#define TS_LEVEL_DEADLINE	101
/* Of SCHED_DS, for a group's priority. */
#define TS_LEVEL_GROUP(priority)	(TS_LEVEL_DEADLINE + (priority))
#define TS_LEVEL_POOL		201
#define TS_LEVEL_WINDOW		202

/*
 * Embedded in task_struct: the timer of its sleep, while it has a level. Both
 * are protected by the lock of base->cpu_base.
 */
struct timershield_task {
	struct hrtimer_clock_base	*base;	/* NULL: no such timer */
	struct hrtimer			*timer;
};

extern const struct sched_class macrotick_sched_class;
extern const struct sched_class macrotick_ds_sched_class;

#ifdef CONFIG_TIMERSHIELD
void __timershield_tick(u64 times);

/* Hook of the tick, which has been due so many times. */
static inline void timershield_tick(u64 times)
{
	if (unlikely(times > 1))
		__timershield_tick(times);
}
#else
static inline void timershield_tick(u64 times) { }
#endif

#endif /* _LINUX_TIMERSHIELD_H */
