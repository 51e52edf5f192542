// SPDX-License-Identifier: MIT OR Apache-2.0
// The test's view of an order: timers by number, and calls without the kernel's types.
#include <stdlib.h>

#include "order.h"

struct harness {
	struct ts_order order;
	struct hrtimer_clock_base bases[TS_CLOCKS];
	struct timerqueue_node nodes[];
};

unsigned int harness_levels(void)
{
	return TS_LEVELS;
}

unsigned int harness_clocks(void)
{
	return TS_CLOCKS;
}

struct harness *harness_new(size_t nodes)
{
	struct harness *h = calloc(1, sizeof(*h) + nodes * sizeof(h->nodes[0]));

	if (h)
		h->order = (struct ts_order)TS_ORDER_INIT;
	return h;
}

void harness_free(struct harness *h)
{
	free(h);
}

void harness_add(struct harness *h, size_t timer, int64_t expires, unsigned int level, unsigned int clock)
{
	h->nodes[timer].expires = expires;
	ts_order_add(&h->order, &h->nodes[timer], level, clock, expires - h->bases[clock].offset);
}

void harness_del(struct harness *h, size_t timer, unsigned int level, unsigned int clock)
{
	ts_order_del(&h->order, h->bases, &h->nodes[timer], level, clock);
}

unsigned int harness_count(const struct harness *h)
{
	return h->order.nr;
}

// The level of the timer that expires first at or above a level, or -1.
int harness_earliest(struct harness *h, unsigned int level, int64_t *expires)
{
	struct ts_next next = ts_order_next(&h->order, h->bases, level);

	*expires = next.expires;
	return next.node ? (int)next.level : -1;
}

// The timer of the highest level with an expired one, or -1.
long harness_expired(struct harness *h, int64_t now)
{
	struct timerqueue_node *node = ts_order_expired(&h->order, h->bases, now);

	return node ? node - h->nodes : -1;
}

int64_t harness_soonest(const struct harness *h)
{
	return h->order.soonest;
}

void harness_set_offset(struct harness *h, unsigned int clock, int64_t offset)
{
	h->bases[clock].offset = offset;
	ts_order_look(&h->order, h->bases);
}
