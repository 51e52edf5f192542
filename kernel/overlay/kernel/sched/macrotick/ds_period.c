// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the server period, the same for all groups.
 *
 * kernel.sched_ds_period_us	can change while no group has a budget
 * kernel.sched_ds_phase_ns	the distance of refills from multiples of the period
 */
#include <linux/gcd.h>
#include <linux/sysctl.h>

#include "ds.h"

#define MT_DS_MIN_PERIOD_US	100
#define MT_DS_MAX_PERIOD_US	1000000

u64 mt_ds_period = 2500 * NSEC_PER_USEC;
unsigned int mt_ds_phase;

/**
 * mt_ds_set_period - sets the server period
 * @period: ns; no group has a budget
 *
 * Refills are as far as possible from the ticks, which are at the multiples of
 * TICK_NSEC (without skew_tick=1). Two interrupts at one instant would both
 * delay a thread that is released then. A tick that is no whole number of
 * microseconds, such as that of 300 Hz, drifts over the refills.
 */
void mt_ds_set_period(u64 period)
{
	WRITE_ONCE(mt_ds_period, period);
	WRITE_ONCE(mt_ds_phase, gcd(period, TICK_NSEC) / 2);
}

static int period_handler(const struct ctl_table *table, int write, void *buffer,
			  size_t *length, loff_t *pos)
{
	unsigned int us, min = MT_DS_MIN_PERIOD_US, max = MT_DS_MAX_PERIOD_US;
	struct ctl_table copy = {
		.data = &us,
		.maxlen = sizeof(us),
		.extra1 = &min,
		.extra2 = &max,
	};
	int err;

	us = div_u64(READ_ONCE(mt_ds_period), NSEC_PER_USEC);
	err = proc_douintvec_minmax(&copy, write, buffer, length, pos);
	if (err || !write)
		return err;
	return mt_ds_change_period((u64)us * NSEC_PER_USEC);
}

static struct ctl_table mt_ds_sysctls[] = {
	{
		.procname	= "sched_ds_period_us",
		.mode		= 0644,
		.proc_handler	= period_handler,
	},
	{
		.procname	= "sched_ds_phase_ns",
		.data		= &mt_ds_phase,
		.maxlen		= sizeof(mt_ds_phase),
		.mode		= 0444,
		.proc_handler	= proc_douintvec,
	},
};

static int __init mt_ds_period_init(void)
{
	mt_ds_set_period(mt_ds_period);
	register_sysctl_init("kernel", mt_ds_sysctls);
	return 0;
}
subsys_initcall(mt_ds_period_init);
