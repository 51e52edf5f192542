/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TimerShield: the pending timers of one CPU, by level and expiry.
 *
 * A level states the importance of a timer. For each level, each clock has the
 * timer that expires first, and a queue of the others. The queue is usually
 * empty, because tasks differ in priority. Over a clock's levels stands a
 * segment tree with wide nodes: each group of TS_FAN levels knows its level
 * with the first expiry. Masks skip levels and groups without timers. Usually
 * few levels of one clock have timers. Every operation then takes a few
 * instructions. A binary tree takes log2(levels) steps even for a single timer.
 * In the worst case an operation looks at TS_GROUPS + TS_FAN places of a clock.
 *
 * Clocks are compared on CLOCK_MONOTONIC: a timer expires at its own expiry
 * minus the offset of its clock, which is in the caller's bases. Setting a
 * clock does not change the order within it. This file allocates nothing and
 * takes no lock. tests/timershield compiles it for user space.
 */
#ifndef _KERNEL_TIME_TIMERSHIELD_ORDER_H
#define _KERNEL_TIME_TIMERSHIELD_ORDER_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/macrotick_linux.h>
#include <linux/minmax.h>

/* whole groups, at least the levels of include/linux/timershield.h */
#define TS_LEVELS	208
#define TS_FAN		8
#define TS_GROUPS	(TS_LEVELS / TS_FAN)
#define TS_CLOCKS	4
#define TS_NEVER	KTIME_MAX

/* The timers of a level and clock. */
struct ts_queue {
	struct ts_node	*first;
	struct ts_head	rest;
};

/* The timers of a clock. */
struct ts_queues {
	struct ts_queue	queue[TS_LEVELS];
	unsigned long	groups;			/* groups with timers, a bit each */
	u8		levels[TS_GROUPS];	/* by group: levels with timers, a bit each */
	/* by group with timers: the level with the first expiry */
	unsigned int	best[TS_GROUPS];
};

struct ts_order {
	unsigned int		nr;		/* timers of all clocks */
	unsigned long		clocks;		/* clocks with timers, a bit each */
	/* The timer that expired first at the last look: a clock may have been set since. */
	ktime_t			soonest;	/* its expiry, on CLOCK_MONOTONIC */
	int			soonest_level;	/* negative: no timer */
	struct ts_queues	of[TS_CLOCKS];
};

/* The first expiry of some timers. */
struct ts_next {
	struct ts_node	*node;		/* NULL: no timer */
	ktime_t			expires;	/* on CLOCK_MONOTONIC; TS_NEVER: no timer */
	int			level;		/* negative: no timer */
};

/* Returns the first timer of a level. */
static inline struct ts_node *ts_first_of(struct ts_queues *q, unsigned int level)
{
	return q->queue[level].first;
}

/*
 * Returns the level with the earlier first expiry, of two levels with timers.
 * Of equals, returns the higher one.
 */
static inline unsigned int ts_earlier(struct ts_queues *q, unsigned int low, unsigned int high)
{
	return ts_first_of(q, high)->expires <= ts_first_of(q, low)->expires ? high : low;
}

/* Returns the level with the first expiry, of some levels of a group, at least one. */
static inline unsigned int ts_earliest_of(struct ts_queues *q, unsigned int group,
					  unsigned long levels)
{
	unsigned int best = group * TS_FAN + __ffs(levels);

	while (levels &= levels - 1)
		best = ts_earlier(q, best, group * TS_FAN + __ffs(levels));
	return best;
}

/*
 * Returns the level with the first expiry, of a clock's levels at or above
 * @level; negative if they have no timer.
 */
static inline int ts_queues_earliest(struct ts_queues *q, unsigned int level)
{
	unsigned int group = level / TS_FAN;
	unsigned long levels = q->levels[group] & (~0UL << level % TS_FAN);
	unsigned long groups = q->groups & (~1UL << group);
	int best;

	if (levels) {
		best = ts_earliest_of(q, group, levels);
	} else if (groups) {
		best = q->best[__ffs(groups)];
		groups &= groups - 1;
	} else {
		return -1;
	}
	for (; groups; groups &= groups - 1)
		best = ts_earlier(q, best, q->best[__ffs(groups)]);
	return best;
}

/* Returns the highest level of a clock with an expired timer, or a negative number. */
static inline int ts_queues_expired(struct ts_queues *q, ktime_t now)
{
	unsigned long groups, levels;

	for (groups = q->groups; groups; groups ^= 1UL << __fls(groups)) {
		unsigned int group = __fls(groups);

		if (ts_first_of(q, q->best[group])->expires > now)
			continue;
		for (levels = q->levels[group]; levels; levels ^= 1UL << __fls(levels)) {
			unsigned int level = group * TS_FAN + __fls(levels);

			if (ts_first_of(q, level)->expires <= now)
				return level;
		}
	}
	return -1;
}

/* Returns the highest level of a clock that has timers. */
static inline unsigned int ts_queues_highest(struct ts_queues *q)
{
	unsigned int group = __fls(q->groups);

	return group * TS_FAN + __fls(q->levels[group]);
}

/* An order without timers is zero, except for these fields. */
#define TS_ORDER_INIT	{ .soonest = TS_NEVER, .soonest_level = -1 }

/* Does the same as ts_order_next(), without use of the recorded first expiry. */
static noinline struct ts_next ts_order_next_of(struct ts_order *o,
						const struct hrtimer_clock_base *bases,
						unsigned int level)
{
	struct ts_next next = { NULL, TS_NEVER, -1 };
	unsigned long clocks;

	for (clocks = o->clocks; clocks; clocks &= clocks - 1) {
		unsigned int clock = __ffs(clocks);
		int best = ts_queues_earliest(&o->of[clock], level);
		struct ts_node *node;
		ktime_t expires;

		if (best < 0)
			continue;
		node = ts_first_of(&o->of[clock], best);
		expires = node->expires - bases[clock].offset;
		if (expires < next.expires || (expires == next.expires && best > next.level))
			next = (struct ts_next){ node, expires, best };
	}
	return next;
}

/**
 * ts_order_next - returns the timer that expires first at or above a level
 * @o: the order
 * @bases: the clocks, with their offsets
 * @level: the lowest level to look at
 *
 * Returns: the timer; of timers with equal expiry, one of the highest level.
 */
static inline struct ts_next ts_order_next(struct ts_order *o,
					   const struct hrtimer_clock_base *bases,
					   unsigned int level)
{
	int soonest = o->soonest_level;

	/* Usually it is the first timer of all, which is known unless clocks are set. */
	if (o->clocks == BIT(HRTIMER_BASE_MONOTONIC) && soonest >= (int)level)
		return (struct ts_next){ ts_first_of(&o->of[HRTIMER_BASE_MONOTONIC], soonest),
					 o->soonest, soonest };
	return ts_order_next_of(o, bases, level);
}

/* Does the same as ts_order_expired(), for any clocks and levels. */
static noinline struct ts_node *ts_order_expired_of(struct ts_order *o,
							    const struct hrtimer_clock_base *bases,
							    ktime_t now)
{
	struct ts_node *node = NULL;
	unsigned long clocks;
	int level = -1;

	for (clocks = o->clocks; clocks; clocks &= clocks - 1) {
		unsigned int clock = __ffs(clocks);
		int highest = ts_queues_expired(&o->of[clock], now + bases[clock].offset);

		if (highest > level) {
			level = highest;
			node = ts_first_of(&o->of[clock], level);
		}
	}
	return node;
}

/**
 * ts_order_expired - returns the first timer of the highest level with an expired timer
 * @o: the order
 * @bases: the clocks, with their offsets
 * @now: the instant, on CLOCK_MONOTONIC
 *
 * Returns: the timer, or NULL if no timer has expired.
 */
static inline struct ts_node *ts_order_expired(struct ts_order *o,
						       const struct hrtimer_clock_base *bases,
						       ktime_t now)
{
	struct ts_queues *q = &o->of[HRTIMER_BASE_MONOTONIC];
	struct ts_node *node;

	/* Usually the timer is on that clock, and on the highest level of all. */
	if (o->clocks == BIT(HRTIMER_BASE_MONOTONIC)) {
		node = ts_first_of(q, ts_queues_highest(q));
		if (node->expires <= now)
			return node;
	}
	return ts_order_expired_of(o, bases, now);
}

/**
 * ts_order_look - looks up the first expiry of all timers again
 * @o: the order
 * @bases: the clocks, with their offsets
 */
static inline void ts_order_look(struct ts_order *o, const struct hrtimer_clock_base *bases)
{
	struct ts_next next = ts_order_next_of(o, bases, 0);

	/* With WRITE_ONCE(): ts_set_level() reads them without the lock. */
	WRITE_ONCE(o->soonest_level, next.level);
	WRITE_ONCE(o->soonest, next.expires);
}

/*
 * Puts the former first timer of a level back into the queue. It is older than
 * others of the same expiry, and comes before them. ts_head_add() would put
 * it behind them.
 */
static noinline void ts_put_back(struct ts_head *rest, struct ts_node *node)
{
	ts_head_put_first(rest, node);
}

/**
 * ts_order_add - adds a timer
 * @o: the order
 * @node: the timer, with its expiry set, not queued
 * @level: its level
 * @clock: its clock
 * @expires: its expiry, on CLOCK_MONOTONIC
 */
static inline void ts_order_add(struct ts_order *o, struct ts_node *node,
				unsigned int level, unsigned int clock, ktime_t expires)
{
	struct ts_queues *q = &o->of[clock];
	unsigned int group = level / TS_FAN;
	struct ts_node *first;
	struct ts_queue *queue;

	/* Makes the compiler compute this once. */
	OPTIMIZER_HIDE_VAR(q);
	queue = &q->queue[level];
	first = queue->first;
	o->nr++;
	if (first && first->expires <= node->expires) {
		ts_head_add(&queue->rest, node);
		return;
	}
	queue->first = node;
	if (!q->levels[group] ||
	    ts_earlier(q, min(level, q->best[group]), max(level, q->best[group])) == level)
		q->best[group] = level;
	q->levels[group] |= BIT(level % TS_FAN);
	__set_bit(group, &q->groups);
	__set_bit(clock, &o->clocks);
	if (expires < o->soonest || (expires == o->soonest && (int)level > o->soonest_level)) {
		WRITE_ONCE(o->soonest_level, level);
		WRITE_ONCE(o->soonest, expires);
	}
	if (first)
		ts_put_back(&queue->rest, first);
}

/* Removes a timer if there are others. */
static noinline void ts_order_del_one(struct ts_order *o, const struct hrtimer_clock_base *bases,
				      struct ts_node *node, unsigned int level,
				      unsigned int clock)
{
	struct ts_queues *q = &o->of[clock];
	struct ts_queue *queue = &q->queue[level];
	unsigned int group = level / TS_FAN;

	if (queue->first != node) {
		ts_head_del(&queue->rest, node);
		return;
	}
	queue->first = ts_head_first(&queue->rest);
	if (queue->first)
		ts_head_del(&queue->rest, queue->first);
	else
		q->levels[group] &= ~BIT(level % TS_FAN);
	if (q->levels[group])
		q->best[group] = ts_earliest_of(q, group, q->levels[group]);
	else
		__clear_bit(group, &q->groups);
	if (!q->groups)
		__clear_bit(clock, &o->clocks);
	if ((int)level == o->soonest_level)
		ts_order_look(o, bases);
}

/**
 * ts_order_del - removes a timer
 * @o: the order
 * @bases: the clocks, with their offsets
 * @node: the timer
 * @level: the level with which it was added
 * @clock: the clock with which it was added
 */
static inline void ts_order_del(struct ts_order *o, const struct hrtimer_clock_base *bases,
				struct ts_node *node, unsigned int level,
				unsigned int clock)
{
	struct ts_queues *q = &o->of[clock];

	if (--o->nr) {
		ts_order_del_one(o, bases, node, level, clock);
		return;
	}
	q->queue[level].first = NULL;
	q->levels[level / TS_FAN] = 0;
	q->groups = 0;
	o->clocks = 0;
	WRITE_ONCE(o->soonest_level, -1);
	WRITE_ONCE(o->soonest, TS_NEVER);
}

#endif /* _KERNEL_TIME_TIMERSHIELD_ORDER_H */
