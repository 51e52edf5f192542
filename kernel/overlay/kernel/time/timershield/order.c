// SPDX-License-Identifier: GPL-2.0-only
/*
 * TimerShield: the pending timers of one CPU, by level and expiry. See order.h.
 */
#include "order.h"

/* Of two levels the one whose timer expires first; of equals the higher one. */
static u8 earlier(const struct ts_order *o, u8 low, u8 high)
{
	return o->earliest[high] <= o->earliest[low] ? high : low;
}

/* The earliest expiry of a level has changed. */
static void update_tree(struct ts_order *o, unsigned int level)
{
	unsigned int i;

	for (i = (TS_WIDTH + level) / 2; i; i /= 2) {
		u8 best = earlier(o, o->best[2 * i], o->best[2 * i + 1]);

		/* Above, nobody knows of a level that is not the best below. */
		if (best == o->best[i] && best != level)
			return;
		o->best[i] = best;
	}
}

static ktime_t expiry(const struct ts_order *o, const struct timerqueue_node *node, unsigned int clock)
{
	return node->expires - o->offset[clock];
}

static void update_level(struct ts_order *o, unsigned int level)
{
	ktime_t earliest = TS_NEVER;
	unsigned int clock;

	for (clock = 0; clock < TS_CLOCKS; clock++) {
		struct timerqueue_node *node = timerqueue_getnext(&o->queue[level][clock]);

		if (node && expiry(o, node, clock) < earliest)
			earliest = expiry(o, node, clock);
	}
	if (earliest == o->earliest[level])
		return;
	o->earliest[level] = earliest;
	update_tree(o, level);
}

/**
 * ts_order_init - make an order that has no timers
 * @o: the order
 */
void ts_order_init(struct ts_order *o)
{
	unsigned int i, clock;

	o->nr = 0;
	for (clock = 0; clock < TS_CLOCKS; clock++)
		o->offset[clock] = 0;
	for (i = 0; i < TS_LEVELS * TS_CLOCKS; i++)
		timerqueue_init_head(&o->queue[i / TS_CLOCKS][i % TS_CLOCKS]);
	for (i = 0; i < TS_WIDTH; i++) {
		o->earliest[i] = TS_NEVER;
		o->best[TS_WIDTH + i] = i;
	}
	for (i = TS_WIDTH - 1; i; i--)
		o->best[i] = o->best[2 * i + 1];
}

/**
 * ts_order_add - add a timer
 * @o: the order
 * @node: the timer, with its expiry set, in no queue
 * @level: its level
 * @clock: its clock
 */
void ts_order_add(struct ts_order *o, struct timerqueue_node *node, unsigned int level, unsigned int clock)
{
	ktime_t expires = expiry(o, node, clock);

	o->nr++;
	timerqueue_add(&o->queue[level][clock], node);
	if (expires >= o->earliest[level])
		return;
	o->earliest[level] = expires;
	update_tree(o, level);
}

/**
 * ts_order_del - remove a timer
 * @o: the order
 * @node: the timer
 * @level: the level with which it was added
 * @clock: the clock with which it was added
 */
void ts_order_del(struct ts_order *o, struct timerqueue_node *node, unsigned int level, unsigned int clock)
{
	ktime_t expires = expiry(o, node, clock);

	o->nr--;
	timerqueue_del(&o->queue[level][clock], node);
	if (expires == o->earliest[level])
		update_level(o, level);
}

/**
 * ts_order_earliest - what expires first at or above a level
 * @o: the order
 * @level: the lowest level to look at
 *
 * Returns: the level of that timer, whose expiry is @o->earliest[] of it;
 * TS_NEVER there says that there is none.
 */
unsigned int ts_order_earliest(const struct ts_order *o, unsigned int level)
{
	unsigned int i;
	u8 best = level;

	for (i = TS_WIDTH + level; i > 1; i /= 2) {
		if (!(i & 1))
			best = earlier(o, best, o->best[i + 1]);
	}
	return best;
}

/**
 * ts_order_expired - the highest level with an expired timer
 * @o: the order
 * @now: the instant, on CLOCK_MONOTONIC
 *
 * Returns: the level, or -1 if no timer has expired.
 */
int ts_order_expired(const struct ts_order *o, ktime_t now)
{
	unsigned int i = 1;

	if (o->earliest[o->best[i]] > now)
		return -1;
	while (i < TS_WIDTH) {
		i = 2 * i + 1;
		if (o->earliest[o->best[i]] > now)
			i--;
	}
	return i - TS_WIDTH;
}

/**
 * ts_order_first - the timer of a level that expires first
 * @o: the order
 * @level: the level
 * @clock: where to store the timer's clock
 *
 * Returns: the timer, or NULL if there is none.
 */
struct timerqueue_node *ts_order_first(struct ts_order *o, unsigned int level, unsigned int *clock)
{
	struct timerqueue_node *first = NULL;
	unsigned int i;

	for (i = 0; i < TS_CLOCKS; i++) {
		struct timerqueue_node *node = timerqueue_getnext(&o->queue[level][i]);

		if (!node || (first && expiry(o, node, i) >= expiry(o, first, *clock)))
			continue;
		first = node;
		*clock = i;
	}
	return first;
}

/**
 * ts_order_set_offset - a clock was set
 * @o: the order
 * @clock: the clock
 * @offset: by how much it is ahead of CLOCK_MONOTONIC
 */
void ts_order_set_offset(struct ts_order *o, unsigned int clock, ktime_t offset)
{
	unsigned int level;

	if (o->offset[clock] == offset)
		return;
	o->offset[clock] = offset;
	for (level = 0; o->nr && level < TS_LEVELS; level++)
		update_level(o, level);
}
