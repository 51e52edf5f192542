// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the lead of a group.
 *
 * A thread of it that sleeps until an instant is woken up so much earlier, and
 * is held in front of user space until then, as lead.c does for jobs: what lies
 * between the timer's interrupt and the thread's next instruction does not
 * matter any longer. It holds on its own budget, where everybody more important
 * preempts it.
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
 * mt_ds_sleep - the caller is going to sleep
 * @timer: what ends its sleep, not yet started
 */
void mt_ds_sleep(struct hrtimer *timer)
{
	s64 soft = hrtimer_get_softexpires_tv64(timer);

	/* Nothing is before zero: a relative time would overflow. */
	current->macrotick.ds.led = min_t(s64, lead_of(current), max_t(s64, soft, 0));
	hrtimer_add_expires_ns(timer, -(s64)current->macrotick.ds.led);
}

/**
 * mt_ds_slept - the caller has slept
 * @timer: what ended its sleep, not active any longer
 * @is_over: it was no signal that did
 *
 * The clock may be set meanwhile: it is held no longer than the lead.
 */
void mt_ds_slept(struct hrtimer *timer, bool is_over)
{
	u32 led = current->macrotick.ds.led;
	s64 rest;

	if (!led)
		return;
	current->macrotick.ds.led = 0;
	/* No overflow: it was taken off, and a sum with the clock ends at KTIME_SEC_MAX. */
	hrtimer_add_expires_ns(timer, led);
	if (!is_over)
		return;
	mt_pass_door();
	rest = ktime_sub(hrtimer_get_softexpires(timer), hrtimer_cb_get_time(timer));
	mt_hold_until(ktime_get_ns() + clamp_t(s64, rest, 0, led));
}
