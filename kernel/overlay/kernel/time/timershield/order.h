/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: the pending timers of one CPU, by level and expiry.
 *
 * A level says how important a timer is. For each level and clock there is a
 * queue. Over the levels stands a segment tree with wide nodes: each group of
 * TS_FAN levels knows the one whose timer expires first. What has no timers is
 * left out by masks, and as a rule few levels have any at a time: then every
 * operation is a few instructions, where a binary tree takes log2(levels) steps
 * even for a single timer. At worst TS_GROUPS + TS_FAN places are looked at.
 *
 * Clocks are compared on CLOCK_MONOTONIC: a timer expires at its own expiry
 * minus the offset of its clock. Nothing is allocated and nothing locked here.
 * tests/timershield compiles this for user space.
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_ORDER_H
#define _KERNEL_TIME_TIMERSHIELD_ORDER_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/timerqueue.h>

#define TS_LEVELS	208	/* at least those of include/linux/timershield.h, whole groups */
#define TS_FAN		8
#define TS_GROUPS	(TS_LEVELS / TS_FAN)
#define TS_CLOCKS	4
#define TS_NEVER	KTIME_MAX

struct ts_order {
	unsigned int		nr;		/* timers in all queues */
	unsigned int		groups;		/* those with timers, a bit each */
	ktime_t			soonest;	/* when the first expires, on CLOCK_MONOTONIC */
	unsigned int		soonest_level;	/* its level */
	ktime_t			offset[TS_CLOCKS];
	u8			levels[TS_GROUPS];	/* by group: those with timers, as bits */
	u8			best[TS_GROUPS];	/* by group: the level that expires first */
	u8			clocks[TS_LEVELS];	/* by level: those with timers, as bits */
	struct timerqueue_node	*first[TS_LEVELS];	/* by level */
	ktime_t			earliest[TS_LEVELS];	/* when that expires, on CLOCK_MONOTONIC */
	struct timerqueue_head	queue[TS_LEVELS][TS_CLOCKS];
};

/* Of two levels the one whose timer expires first; of equals the higher one. */
static inline unsigned int ts_earlier(const struct ts_order *o, unsigned int low, unsigned int high)
{
	return o->earliest[high] <= o->earliest[low] ? high : low;
}

/* @best, or one of some levels of a group, all above it, that expires earlier. */
static inline unsigned int ts_earliest_of(const struct ts_order *o, unsigned int best,
					  unsigned int group, unsigned long levels)
{
	for (; levels; levels &= levels - 1)
		best = ts_earlier(o, best, group * TS_FAN + __ffs(levels));
	return best;
}

static inline ktime_t ts_expiry(const struct ts_order *o, const struct timerqueue_node *node,
				unsigned int clock)
{
	return node->expires - o->offset[clock];
}

/* A timer expires before all others of its level. */
static inline void ts_put_first(struct ts_order *o, struct timerqueue_node *node,
				unsigned int level, ktime_t expires)
{
	unsigned int group = level / TS_FAN, best = o->best[group];

	o->first[level] = node;
	o->earliest[level] = expires;
	o->levels[group] |= BIT(level % TS_FAN);
	o->groups |= BIT(group);
	o->best[group] = level < best ? ts_earlier(o, level, best) : ts_earlier(o, best, level);
	if (expires < o->soonest) {
		WRITE_ONCE(o->soonest_level, level);
		WRITE_ONCE(o->soonest, expires);
	}
}

/* The last timer is gone. */
static inline void ts_clear(struct ts_order *o, unsigned int level)
{
	o->first[level] = NULL;
	o->earliest[level] = TS_NEVER;
	o->clocks[level] = 0;
	o->levels[level / TS_FAN] = 0;
	o->groups = 0;
	WRITE_ONCE(o->soonest, TS_NEVER);
}

/* What the tree says of a group, after a change in one of its levels. */
static inline void ts_update_group(struct ts_order *o, unsigned int group)
{
	unsigned long groups;
	unsigned int soonest;

	o->best[group] = ts_earliest_of(o, group * TS_FAN, group, o->levels[group]);
	if (o->levels[group])
		o->groups |= BIT(group);
	else
		o->groups &= ~BIT(group);
	soonest = o->best[group];
	for (groups = o->groups; groups; groups &= groups - 1)
		soonest = ts_earlier(o, soonest, o->best[__ffs(groups)]);
	/* At once: ts_stays() reads them without the lock. */
	WRITE_ONCE(o->soonest_level, soonest);
	WRITE_ONCE(o->soonest, o->earliest[soonest]);
}

static inline void ts_update_level(struct ts_order *o, unsigned int level)
{
	struct timerqueue_node *first = NULL;
	ktime_t earliest = TS_NEVER;
	unsigned long clocks;

	for (clocks = o->clocks[level]; clocks; clocks &= clocks - 1) {
		unsigned int clock = __ffs(clocks);
		struct timerqueue_node *node = timerqueue_getnext(&o->queue[level][clock]);

		if (first && ts_expiry(o, node, clock) >= earliest)
			continue;
		first = node;
		earliest = ts_expiry(o, node, clock);
	}
	o->first[level] = first;
	o->earliest[level] = earliest;
	if (first)
		o->levels[level / TS_FAN] |= BIT(level % TS_FAN);
	else
		o->levels[level / TS_FAN] &= ~BIT(level % TS_FAN);
	ts_update_group(o, level / TS_FAN);
}

/**
 * ts_order_init - make an order that has no timers
 * @o: the order
 */
static inline void ts_order_init(struct ts_order *o)
{
	unsigned int i;

	memset(o, 0, sizeof(*o));
	for (i = 0; i < TS_LEVELS * TS_CLOCKS; i++)
		timerqueue_init_head(&o->queue[i / TS_CLOCKS][i % TS_CLOCKS]);
	for (i = 0; i < TS_LEVELS; i++)
		o->earliest[i] = TS_NEVER;
	for (i = 0; i < TS_GROUPS; i++)
		o->best[i] = i * TS_FAN;
	o->soonest = TS_NEVER;
}

/**
 * ts_order_add - add a timer
 * @o: the order
 * @node: the timer, with its expiry set, in no queue
 * @level: its level
 * @clock: its clock
 */
static inline void ts_order_add(struct ts_order *o, struct timerqueue_node *node,
				unsigned int level, unsigned int clock)
{
	ktime_t expires = ts_expiry(o, node, clock);

	o->nr++;
	o->clocks[level] |= BIT(clock);
	if (!o->first[level] || expires < o->earliest[level])
		ts_put_first(o, node, level, expires);
	/* Last: the caller need not save anything for it. */
	timerqueue_add(&o->queue[level][clock], node);
}

/**
 * ts_order_del - remove a timer
 * @o: the order
 * @node: the timer
 * @level: the level with which it was added
 * @clock: the clock with which it was added
 */
static inline void ts_order_del(struct ts_order *o, struct timerqueue_node *node,
				unsigned int level, unsigned int clock)
{
	bool more = timerqueue_del(&o->queue[level][clock], node);

	if (!--o->nr) {
		ts_clear(o, level);
		return;
	}
	if (!more)
		o->clocks[level] &= ~BIT(clock);
	if (o->first[level] == node)
		ts_update_level(o, level);
}

/**
 * ts_order_earliest - what expires first at or above a level
 * @o: the order
 * @level: the lowest level to look at
 *
 * Returns: the level of that timer, whose expiry is @o->earliest[] of it;
 * TS_NEVER there says that there is none.
 */
static inline unsigned int ts_order_earliest(const struct ts_order *o, unsigned int level)
{
	unsigned int group = level / TS_FAN, best;
	unsigned long groups = o->groups & (~1UL << group);

	best = ts_earliest_of(o, level, group, o->levels[group] & (~0UL << level % TS_FAN));
	for (; groups; groups &= groups - 1)
		best = ts_earlier(o, best, o->best[__ffs(groups)]);
	return best;
}

/**
 * ts_order_expired - the highest level with an expired timer
 * @o: the order
 * @now: the instant, on CLOCK_MONOTONIC
 *
 * Returns: the level, or -1 if no timer has expired.
 */
static inline int ts_order_expired(const struct ts_order *o, ktime_t now)
{
	unsigned long groups = o->groups, levels;
	unsigned int group, level;

	if (o->soonest > now)
		return -1;
	for (; groups; groups &= ~BIT(group)) {
		group = __fls(groups);
		if (o->earliest[o->best[group]] > now)
			continue;
		levels = o->levels[group];
		while (o->earliest[level = group * TS_FAN + __fls(levels)] > now)
			levels &= ~BIT(level % TS_FAN);
		return level;
	}
	return -1;
}

/**
 * ts_order_set_offset - a clock was set
 * @o: the order
 * @clock: the clock
 * @offset: by how much it is ahead of CLOCK_MONOTONIC
 */
static inline void ts_order_set_offset(struct ts_order *o, unsigned int clock, ktime_t offset)
{
	unsigned int level;

	if (o->offset[clock] == offset)
		return;
	o->offset[clock] = offset;
	for (level = 0; level < TS_LEVELS; level++) {
		if (o->clocks[level])
			ts_update_level(o, level);
	}
}

#endif /* _KERNEL_TIME_TIMERSHIELD_ORDER_H */
