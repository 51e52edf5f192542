/* SPDX-License-Identifier: GPL-2.0-only */
/* TimerShield: the interface between control.c and shield.c. */
#ifndef _KERNEL_TIME_TIMERSHIELD_CONTROL_H
#define _KERNEL_TIME_TIMERSHIELD_CONTROL_H

#include <linux/percpu.h>

/* Counters of one CPU, written with its hrtimer base locked. */
struct ts_stats {
	u64	served;		/* timers that expired */
	u64	deferred;	/* of these, timers that had been masked before */
	u64	masked;		/* how often the event device was taken from a timer */
	u64	stopped;	/* how often expired timers were left for later */
	u64	moved;		/* pending timers that changed their level */
};

DECLARE_PER_CPU(struct ts_stats, ts_stats);

extern unsigned int timershield_tick_delay_us;

void timershield_init(void);
bool timershield_get(void);
void timershield_set(bool on);
unsigned int timershield_pending(unsigned int cpu);

#endif /* _KERNEL_TIME_TIMERSHIELD_CONTROL_H */
