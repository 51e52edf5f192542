// SPDX-License-Identifier: MIT OR Apache-2.0
// What the test sees of an order: timers by number, and calls without the kernel's types.
#include <stdlib.h>

#include "order.h"

struct harness {
	struct ts_order order;
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
	struct harness *h = malloc(sizeof(*h) + nodes * sizeof(h->nodes[0]));

	if (h)
		ts_order_init(&h->order);
	return h;
}

void harness_free(struct harness *h)
{
	free(h);
}

void harness_add(struct harness *h, size_t timer, int64_t expires, unsigned int level, unsigned int clock)
{
	h->nodes[timer].expires = expires;
	ts_order_add(&h->order, &h->nodes[timer], level, clock);
}

void harness_del(struct harness *h, size_t timer, unsigned int level, unsigned int clock)
{
	ts_order_del(&h->order, &h->nodes[timer], level, clock);
}

unsigned int harness_count(const struct harness *h)
{
	return h->order.nr;
}

// The level of what expires first at or above a level, or -1.
int harness_earliest(const struct harness *h, unsigned int level, int64_t *expires)
{
	unsigned int best = ts_order_earliest(&h->order, level);

	*expires = h->order.earliest[best];
	return *expires == TS_NEVER ? -1 : (int)best;
}

int harness_expired(const struct harness *h, int64_t now)
{
	return ts_order_expired(&h->order, now);
}

int64_t harness_soonest(const struct harness *h)
{
	return h->order.soonest;
}

// The first timer of a level, or -1.
long harness_first(const struct harness *h, unsigned int level)
{
	struct timerqueue_node *node = h->order.first[level];

	return node ? node - h->nodes : -1;
}

void harness_set_offset(struct harness *h, unsigned int clock, int64_t offset)
{
	ts_order_set_offset(&h->order, clock, offset);
}
