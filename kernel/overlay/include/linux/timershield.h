/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: timers of less important tasks wait while a more important task
 * runs.
 *
 * The level of a task, and of the timer of its sleep:
 *
 *	  0		SCHED_OTHER and below.
 *	  2 .. 100	SCHED_FIFO and SCHED_RR, priorities 1 to 99.
 *	101		SCHED_DEADLINE. These tasks do not shield themselves from
 *			each other's timers.
 *	102 .. 200	SCHED_DS, priorities 1 to 99 of the group. Groups of equal
 *			priority do not shield themselves from each other either.
 *	201		A thread of SCHED_TT in the window of a pool, or a thread
 *			that is lent windows.
 *	202		SCHED_TT in another window: not even the tick disturbs the
 *			job.
 *
 * The effective priority counts, inherited priorities included.
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
/* The level of SCHED_DS, for a group's priority. */
#define TS_LEVEL_GROUP(priority)	(TS_LEVEL_DEADLINE + (priority))
#define TS_LEVEL_POOL		201
#define TS_LEVEL_WINDOW		202

/*
 * Embedded in task_struct: the timer of the task's sleep, while it has a level.
 * The lock of base->cpu_base protects both fields.
 */
struct timershield_task {
	struct hrtimer_clock_base	*base;	/* NULL: no such timer */
	struct hrtimer			*timer;
};

extern const struct sched_class macrotick_sched_class;
extern const struct sched_class macrotick_ds_sched_class;

#ifdef CONFIG_TIMERSHIELD
void __timershield_tick(u64 times);

/* Hook of the tick; @times is how often it has been due. */
static inline void timershield_tick(u64 times)
{
	if (unlikely(times > 1))
		__timershield_tick(times);
}
#else
static inline void timershield_tick(u64 times) { }
#endif

#endif /* _LINUX_TIMERSHIELD_H */
