// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the lead of a group.
 *
 * When a thread of the group sleeps until an instant, the kernel wakes it up
 * early by the lead. It holds the thread before the return to user space until
 * that instant, as lead.c does for jobs. The time between the timer's interrupt
 * and the thread's next instruction then has no effect. The hold is charged to
 * the group's budget, and more important threads preempt it.
 */
#include <linux/macrotick_sleep.h>

#include "internal.h"
#include "ds.h"

DEFINE_STATIC_KEY_FALSE(macrotick_leads);

static u32 lead_of(struct task_struct *p)
{
	struct mt_group *group;

	guard(rcu)();
	group = READ_ONCE(p->macrotick.ds.own.group);
	return group ? READ_ONCE(group->lead) : 0;
}

/**
 * mt_ds_sleep - moves the end of the caller's sleep forward by its group's lead
 * @timer: the timer of the sleep, not yet started
 */
void mt_ds_sleep(struct hrtimer *timer)
{
	s64 soft = hrtimer_get_softexpires(timer);

	/* No earlier than zero: a relative time would overflow. */
	current->macrotick.ds.led = min_t(s64, lead_of(current), max_t(s64, soft, 0));
	hrtimer_add_expires_ns(timer, -(s64)current->macrotick.ds.led);
}

/**
 * mt_ds_slept - holds the caller until its sleep is over
 * @timer: the timer of the sleep, no longer active
 * @is_over: false if a signal ended the sleep
 *
 * A program may set the clock meanwhile: the hold is never longer than the
 * lead.
 */
void mt_ds_slept(struct hrtimer *timer, bool is_over)
{
	u32 led = current->macrotick.ds.led;
	s64 rest;

	if (!led)
		return;
	current->macrotick.ds.led = 0;
	/* No overflow: the lead was subtracted, and a sum with the clock ends at KTIME_SEC_MAX. */
	hrtimer_add_expires_ns(timer, led);
	if (!is_over)
		return;
	mt_pass_door();
	rest = ktime_sub(hrtimer_get_softexpires(timer), hrtimer_cb_get_time(timer));
	mt_hold_until(ktime_get_ns() + clamp_t(s64, rest, 0, led));
}
