/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: the pending timers of one CPU, by level and expiry.
 *
 * A level says how important a timer is. For each level and clock there is a
 * queue; a segment tree over the levels has, for each range of them, the level
 * whose timer expires first:
 *
 *	best[1]				all levels
 *	best[2]		best[3]		their lower and their upper half
 *	...
 *	best[TS_WIDTH + level]		that level
 *
 * Clocks are compared on CLOCK_MONOTONIC: a timer expires at its own expiry
 * minus the offset of its clock. Nothing is allocated and nothing locked here.
 * tests/timershield compiles this for user space.
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_ORDER_H
#define _KERNEL_TIME_TIMERSHIELD_ORDER_H

#include <linux/ktime.h>
#include <linux/timerqueue.h>

#define TS_LEVELS	104	/* see include/linux/timershield.h */
#define TS_WIDTH	128	/* TS_LEVELS, rounded up to a power of two */
#define TS_CLOCKS	4
#define TS_NEVER	KTIME_MAX

struct ts_order {
	unsigned int		nr;		/* timers in all queues */
	ktime_t			offset[TS_CLOCKS];
	ktime_t			earliest[TS_WIDTH];	/* by level, on CLOCK_MONOTONIC */
	u8			best[2 * TS_WIDTH];
	struct timerqueue_head	queue[TS_LEVELS][TS_CLOCKS];
};

void ts_order_init(struct ts_order *o);
void ts_order_add(struct ts_order *o, struct timerqueue_node *node, unsigned int level, unsigned int clock);
void ts_order_del(struct ts_order *o, struct timerqueue_node *node, unsigned int level, unsigned int clock);
unsigned int ts_order_earliest(const struct ts_order *o, unsigned int level);
int ts_order_expired(const struct ts_order *o, ktime_t now);
struct timerqueue_node *ts_order_first(struct ts_order *o, unsigned int level, unsigned int *clock);
void ts_order_set_offset(struct ts_order *o, unsigned int clock, ktime_t offset);

#endif /* _KERNEL_TIME_TIMERSHIELD_ORDER_H */
