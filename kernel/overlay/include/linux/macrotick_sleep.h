/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: hooks of nanosleep(2) and clock_nanosleep(2). A thread of a group
 * with a lead wakes up early, and is held until the sleep is over: see
 * sched/macrotick/ds_lead.c.
 */
#ifndef _LINUX_MACROTICK_SLEEP_H
#define _LINUX_MACROTICK_SLEEP_H

#include <linux/hrtimer.h>
#include <linux/jump_label.h>

#ifdef CONFIG_MACROTICK
DECLARE_STATIC_KEY_FALSE(macrotick_leads);
void mt_ds_sleep(struct hrtimer *timer);
void mt_ds_slept(struct hrtimer *timer, bool is_over);

/* The caller is about to start the timer of its sleep. */
static inline void macrotick_sleep(struct hrtimer_sleeper *t)
{
	if (static_branch_unlikely(&macrotick_leads))
		mt_ds_sleep(&t->timer);
}

/* The timer has expired, or was cancelled. */
static inline void macrotick_slept(struct hrtimer_sleeper *t)
{
	if (static_branch_unlikely(&macrotick_leads))
		mt_ds_slept(&t->timer, !t->task);
}
#else
static inline void macrotick_sleep(struct hrtimer_sleeper *t) { }
static inline void macrotick_slept(struct hrtimer_sleeper *t) { }
#endif

#endif /* _LINUX_MACROTICK_SLEEP_H */
