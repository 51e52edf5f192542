/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: what control.c sees of shield.c.
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_CONTROL_H
#define _KERNEL_TIME_TIMERSHIELD_CONTROL_H

#include <linux/percpu.h>

/* Counters of one CPU, written with its hrtimer base locked. */
struct ts_stats {
	u64	served;		/* timers that expired */
	u64	deferred;	/* of these, after they had been masked */
	u64	masked;		/* times that the event device was taken from a timer */
	u64	stopped;	/* times that expired timers were left for later */
	u64	moved;		/* pending timers whose level changed */
};

DECLARE_PER_CPU(struct ts_stats, ts_stats);

extern unsigned int timershield_tick_delay_us;

void timershield_init(void);
bool timershield_get(void);
void timershield_set(bool on);
unsigned int timershield_pending(unsigned int cpu);

#endif /* _KERNEL_TIME_TIMERSHIELD_CONTROL_H */
