// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the route of an entity with windows on several CPUs.
 *
 * Each CPU walks through its own windows, at its own pace. Jobs must
 * nevertheless be released and judged in the order of the entity's windows. The
 * entity therefore has a position of its own in the sequence of all its
 * windows. The CPU that opens a window first passes over earlier windows that
 * no CPU has opened. Their jobs are released late, or missed, as after a late
 * interrupt.
 */
#include <linux/slab.h>
#include <linux/sort.h>

#include "internal.h"

#include <trace/events/macrotick.h>

int mt_alloc_roaming(struct macrotick_served *entity)
{
	struct mt_roaming *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&r->cpus, GFP_KERNEL_ACCOUNT)) {
		kfree(r);
		return -ENOMEM;
	}
	raw_spin_lock_init(&r->lock);
	entity->roaming = r;
	return 0;
}

void mt_free_roaming(struct macrotick_served *entity)
{
	if (!entity->roaming)
		return;
	free_cpumask_var(entity->roaming->cpus);
	kfree(entity->roaming);
}

static bool is_stop(const struct mt_window *w)
{
	return w->entity->roaming;
}

static unsigned int count_stops(struct macrotick_table *table)
{
	unsigned int i, n = 0;

	for (i = 0; i < table->nr_windows; i++) {
		if (!is_stop(&table->windows[i]))
			continue;
		n++;
		table->windows[i].slot->route.nr_stops++;
	}
	return n;
}

static void list_roaming(struct macrotick_table *table)
{
	unsigned int i, n = 0, stops = 0;

	for (i = 0; i < table->nr_entities; i++) {
		struct mt_slot *slot = &table->slots[i];

		if (!slot->entity->roaming)
			continue;
		table->roaming[n++] = slot;
		slot->route.stops = table->stops + stops;
		stops += slot->route.nr_stops;
		slot->route.nr_stops = 0;
		slot->entity->roaming->route = &slot->route;
	}
}

static void list_stops(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < table->nr_windows; i++) {
		struct mt_window *w = &table->windows[i];
		struct mt_route *route = &w->slot->route;

		if (!is_stop(w))
			continue;
		route->stops[route->nr_stops++] = w;
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct mt_window *left = *(const struct mt_window * const *)a;
	const struct mt_window *right = *(const struct mt_window * const *)b;

	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Checks that no two windows overlap, including the lead before the later one, around the cycle. */
static int order_stops(struct macrotick_install *arg, struct macrotick_table *table,
		       struct mt_route *route)
{
	unsigned int i, jobs = 0;

	sort(route->stops, route->nr_stops, sizeof(*route->stops), by_offset, NULL);
	for (i = 0; i < route->nr_stops; i++) {
		struct mt_window *w = route->stops[i];
		const struct mt_window *before = route->stops[(i ?: route->nr_stops) - 1];

		w->stop = i;
		w->job = jobs;
		jobs += !!(w->flags & MACROTICK_WINDOW_ACTIVATE);
		if (w->offset + (i ? 0 : table->cycle) < before->end + w->lead)
			return mt_refuse(arg, MACROTICK_ERR_WINDOW_PARALLEL, w - table->windows,
					 before - table->windows);
	}
	return 0;
}

/* Lists the windows of roaming entities, in the order in which they begin. */
int mt_decode_routes(struct macrotick_install *arg, struct macrotick_table *table)
{
	unsigned int i, nr_stops = count_stops(table);
	int err = 0;

	if (!table->nr_roaming)
		return 0;
	table->roaming = kvcalloc(table->nr_roaming, sizeof(*table->roaming), GFP_KERNEL_ACCOUNT);
	table->stops = kvcalloc(nr_stops, sizeof(*table->stops), GFP_KERNEL_ACCOUNT);
	if (!table->roaming || !table->stops)
		return -ENOMEM;
	list_roaming(table);
	list_stops(table);
	for (i = 0; i < table->nr_roaming && !err; i++)
		err = order_stops(arg, table, &table->roaming[i]->route);
	return err;
}

/* Begins all routes with the table's first cycle. No CPU dispatches the table yet. */
void mt_begin_routes(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < table->nr_roaming; i++) {
		struct mt_roaming *r = table->roaming[i]->entity->roaming;

		r->route = &table->roaming[i]->route;
		r->cycle = 0;
		r->stop = 0;
		r->since = 0;
	}
}

static void next_stop(struct mt_roaming *r)
{
	if (++r->stop < r->route->nr_stops)
		return;
	r->stop = 0;
	r->cycle++;
}

/* Restarts a stopped entity: windows that passed meanwhile do not concern its threads. */
void mt_rejoin(struct macrotick_served *entity, u64 now)
{
	struct task_struct *p;

	guard(raw_spinlock)(&entity->roaming->lock);
	entity->roaming->since = now;
	list_for_each_entry(p, &entity->threads, macrotick.member)
		p->macrotick.joined = now;
}

/* Whether a roaming entity had a thread when the window began. */
bool mt_concerns_anybody(struct macrotick_served *entity, u64 begin)
{
	struct task_struct *p;
	bool any = false;

	guard(raw_spinlock)(&entity->roaming->lock);
	list_for_each_entry(p, &entity->threads, macrotick.member)
		any |= p->macrotick.joined <= begin;
	return any;
}

/* Passes over a window that no CPU has opened, in a cycle that began at @base. */
static void pass_over(struct rq *rq, struct mt_cpu *c, struct macrotick_served *entity,
		      const struct mt_window *w, u64 base)
{
	u64 begin = base + w->offset;

	if (entity->stopped)
		return;
	if (mt_concerns(entity, begin)) {
		entity->skipped++;
		trace_macrotick_window_skipped(entity->name, cpu_of(rq), begin);
	}
	if (w->flags & MACROTICK_WINDOW_ACTIVATE && begin >= entity->roaming->since)
		mt_activate(rq, entity, mt_job_at(c->table, w, entity->roaming->cycle), begin,
			    false);
	if ((w->flags & MACROTICK_WINDOW_DEADLINE) && entity->nr_jobs)
		mt_check_deadline(c, w, base + w->end);
}

/*
 * Passes over whole cycles after a long standstill, without a walk. The first
 * one began at @base.
 */
static void pass_over_cycles(struct macrotick_served *entity, u64 n, u64 base)
{
	struct mt_roaming *r = entity->roaming;

	if (!entity->stopped && mt_concerns(entity, base))
		entity->skipped += n * r->route->nr_stops;
	r->cycle += n;
}

/* Whether the entity's next window is before another one of its route. */
static bool is_before(const struct mt_roaming *r, u64 cycle, unsigned int stop)
{
	return r->cycle < cycle || (r->cycle == cycle && r->stop < stop);
}

/* Returns the instant when the first of the threads joined; U64_MAX without threads. */
static u64 joined_first(struct macrotick_served *entity)
{
	struct task_struct *p;
	u64 first = U64_MAX;

	guard(raw_spinlock)(&entity->roaming->lock);
	list_for_each_entry(p, &entity->threads, macrotick.member)
		first = min(first, p->macrotick.joined);
	return first;
}

/* Returns the first window that begins no sooner than @into its cycle, or one beyond the last. */
static unsigned int find_stop(const struct mt_route *route, u64 into)
{
	unsigned int from = 0, end = route->nr_stops;

	while (from < end) {
		unsigned int middle = from + (end - from) / 2;

		if (route->stops[middle]->offset >= into)
			end = middle;
		else
			from = middle + 1;
	}
	return from;
}

/*
 * Passes over windows that began before any thread joined, without a walk:
 * there may be a million of them. Stops at a window of the CPU's current cycle.
 */
static void skip_unattended(struct mt_cpu *c, struct macrotick_served *entity, unsigned int stop)
{
	struct mt_roaming *r = entity->roaming;
	u64 cycle = c->cycle, since = joined_first(entity), back = 0;

	if (since < c->base)
		back = DIV64_U64_ROUND_UP(c->base - since, c->table->cycle);
	if (back > cycle)
		return;
	if (since < c->base + c->table->cycle) {
		u64 base = c->base - back * c->table->cycle;
		unsigned int first = find_stop(r->route, since - base);

		cycle -= back;
		if (first == r->route->nr_stops) {
			first = 0;
			cycle++;
		}
		if (cycle < c->cycle || (cycle == c->cycle && first < stop))
			stop = first;
		else
			cycle = c->cycle;
	}
	if (is_before(r, cycle, stop)) {
		r->cycle = cycle;
		r->stop = stop;
	}
}

/* Passes over all windows before a window of the CPU's current cycle. */
static void pass_over_until(struct rq *rq, struct mt_cpu *c, struct macrotick_served *entity,
			    unsigned int stop)
{
	struct mt_roaming *r = entity->roaming;
	u64 cycle = c->table->cycle;

	if (likely(!is_before(r, c->cycle, stop)))
		return;
	if (!entity->nr_jobs)
		skip_unattended(c, entity, stop);
	if (unlikely(r->cycle + 1 < c->cycle))
		pass_over_cycles(entity, c->cycle - r->cycle - 1,
				 c->base - (c->cycle - r->cycle) * cycle);
	while (is_before(r, c->cycle, stop)) {
		pass_over(rq, c, entity, r->route->stops[r->stop],
			  c->base - (c->cycle - r->cycle) * cycle);
		next_stop(r);
	}
}

/**
 * mt_follow_route - moves a roaming entity's position to a window that opens on its CPU
 * @rq: the CPU's run queue, locked
 * @c: the CPU's position, at the window
 * @w: the window
 *
 * Return: whether the window begins now. A CPU that was ahead of this one, by a
 * correction of the clock, may have passed over it.
 */
bool mt_follow_route(struct rq *rq, struct mt_cpu *c, const struct mt_window *w)
{
	struct mt_roaming *r = w->entity->roaming;

	pass_over_until(rq, c, w->entity, w->stop);
	if (r->cycle != c->cycle || r->stop != w->stop)
		return false;
	next_stop(r);
	return true;
}

/**
 * mt_swap_routes - moves the entities on a CPU to the new table
 * @rq: the CPU's run queue, locked
 * @c: the CPU's position, at the end of its old table
 */
void mt_swap_routes(struct rq *rq, struct mt_cpu *c)
{
	unsigned int i;

	for (i = 0; i < c->table->nr_roaming; i++) {
		struct macrotick_served *entity = c->table->roaming[i]->entity;
		struct mt_roaming *r = entity->roaming;

		if (mt_is_elsewhere(c, entity))
			continue;
		pass_over_until(rq, c, entity, 0);
		if (entity->leaves) {
			mt_stop_entity(c, entity);
			continue;
		}
		r->route = r->next_route;
		r->cycle = 0;
		r->stop = 0;
	}
}
