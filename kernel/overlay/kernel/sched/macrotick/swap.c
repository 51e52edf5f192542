// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: a table replaces the running one.
 *
 * The new table takes over the entities that both tables have, with their
 * threads, job numbers and counters. First the kernel stages it on every CPU
 * that either table uses. Then the new table gets its epoch, a future boundary
 * of the old table's cycle. From then on the old table follows its clock no
 * longer (sync.c). Each CPU changes tables when its own walk through the old
 * table reaches the epoch (window.c). Windows do not reach over this boundary,
 * and thus the swap cuts no window. When the last CPU has changed, the thread
 * of miss.c makes the new table the installed one. It releases the threads of
 * entities that the new table lacks.
 *
 * A thread without windows must not stay in the class, because it could hold
 * locks of the kernel. The same thread of miss.c therefore moves the threads of
 * such entities out of the class at once.
 *
 * A job that began under the old table has its deadlines there. It is no miss
 * under the new table (miss.c).
 */
#include "internal.h"

struct macrotick_table *mt_staged;

/* The number of CPUs that have the old table */
static atomic_t nr_behind;

static bool same_cpus(const struct macrotick_served *a, const struct macrotick_served *b)
{
	return !a->roaming == !b->roaming && cpumask_equal(mt_cpus_of(a), mt_cpus_of(b));
}

/*
 * Whether the threads of all entities can stay on their CPUs. Refuses a table
 * that has an entity with threads on other CPUs.
 */
static bool can_adopt(struct macrotick_install *arg, struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < table->nr_entities; i++) {
		struct macrotick_served *fresh = table->slots[i].entity;
		struct mt_slot *old = mt_find_slot(mt_table, fresh->name);

		if (old && !same_cpus(old->entity, fresh) && old->entity->nr_threads) {
			mt_refuse(arg, MACROTICK_ERR_SWAP_CPU, i, old - mt_table->slots);
			return false;
		}
		if (old && old->entity->nr_threads &&
		    (old->entity->pool != fresh->pool || old->entity->slack != fresh->slack)) {
			mt_refuse(arg, MACROTICK_ERR_SWAP_POOL, i, old - mt_table->slots);
			return false;
		}
	}
	return true;
}

/* Adopts order and turns of the new table at once: they affect nothing that is planned. */
static void adopt_order(struct macrotick_served *entity, const struct macrotick_served *fresh)
{
	WRITE_ONCE(entity->pool, fresh->pool);
	WRITE_ONCE(entity->slack, fresh->slack);
	WRITE_ONCE(entity->by_priority, fresh->by_priority);
	WRITE_ONCE(entity->slice, fresh->slice);
}

static void adopt(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < table->nr_entities; i++) {
		struct mt_slot *slot = &table->slots[i];
		struct mt_slot *old = mt_find_slot(mt_table, slot->entity->name);

		if (!old || !same_cpus(old->entity, slot->entity))
			continue;
		slot->first_job = old->first_job + mt_table->prior_cycles * old->prior_releases;
		slot->prior_releases = old->nr_releases;
		adopt_order(old->entity, slot->entity);
		mt_entity_put(slot->entity);
		slot->entity = old->entity;
		mt_entity_get(slot->entity);
		if (slot->entity->roaming)
			slot->entity->roaming->next_route = &slot->route;
	}
	for (i = 0; i < table->nr_windows; i++)
		table->windows[i].entity = table->windows[i].slot->entity;
}

static bool has_entity(struct macrotick_table *table, struct macrotick_served *entity)
{
	struct mt_slot *slot = mt_find_slot(table, entity->name);

	return slot && slot->entity == entity;
}

/* Marks the entities of the running table that the new one lacks. */
static void mark_leaving(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < mt_table->nr_entities; i++) {
		struct macrotick_served *entity = mt_table->slots[i].entity;

		WRITE_ONCE(entity->leaves, table && !has_entity(table, entity));
	}
}

/* Releases the threads of entities that the remaining table does not have. */
static void retire(struct macrotick_table *table, struct macrotick_table *remaining)
{
	unsigned int i;

	for (i = 0; i < table->nr_entities; i++) {
		if (!has_entity(remaining, table->slots[i].entity))
			mt_release_members(table->slots[i].entity);
	}
	mt_table_put(table);
}

static void stage_on_this_cpu(void *table)
{
	struct rq *rq = this_rq();

	raw_spin_rq_lock(rq);
	mt_stage(rq, table);
	raw_spin_rq_unlock(rq);
}

static void begin_on_this_cpu(void *table)
{
	struct rq *rq = this_rq();

	raw_spin_rq_lock(rq);
	mt_begin_swap(rq, table);
	raw_spin_rq_unlock(rq);
}

static void on_concerned_cpus(struct macrotick_table *table, smp_call_func_t func)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		if (mt_is_concerned(cpu))
			smp_call_function_single(cpu, func, table, true);
	}
}

/*
 * Sets the epoch to a boundary that no CPU has reached. With a lead, the first
 * window of the running table may open before it. No interrupt may come between
 * the reading of the clock and the instant at which the other CPUs see the
 * epoch.
 */
static void set_epoch(struct macrotick_table *table)
{
	u64 first, epoch;
	s64 offset;

	guard(irqsave)();
	first = mt_fix_grid(mt_table, &offset);
	epoch = mt_wind_forward(first, offset, mt_table);
	table->prior_cycles = div64_u64(epoch - first, mt_table->cycle);
	mt_init_grid(table, epoch, offset);
	/* Pairs with is_at_swap(). */
	smp_store_release(&table->epoch, epoch - offset);
}

static void stage(struct macrotick_table *table)
{
	unsigned int cpu, nr_concerned = 0;

	table->epoch = U64_MAX;
	mt_publish(mt_table, table);
	mark_leaving(table);
	for_each_online_cpu(cpu)
		nr_concerned += mt_is_concerned(cpu);
	atomic_set(&nr_behind, nr_concerned);
	on_concerned_cpus(table, stage_on_this_cpu);
	set_epoch(table);
	on_concerned_cpus(table, begin_on_this_cpu);
}

/**
 * mt_swap - replaces the installed table
 * @arg: the request; swap_ns is filled in
 * @table: the decoded table
 *
 * Under mt_control. A stopped table is replaced at once.
 *
 * Return: 0, or -EBUSY with the reason as error in @arg. Only then the caller
 * keeps @table. The reasons are
 *
 *  * a swap is in progress, or the running table is on another clock.
 *  * an entity with threads would change its CPUs, or become a pool or stop being one.
 *  * the table does not leave the time of budgets or deadline tasks (mt_admit()).
 */
int mt_swap(struct macrotick_install *arg, struct macrotick_table *table)
{
	struct macrotick_table *old = mt_table;
	int err;

	if (mt_staged) {
		mt_refuse(arg, MACROTICK_ERR_INSTALLED, 0, 0);
		return -EBUSY;
	}
	if (mt_running && table->follows != old->follows) {
		mt_refuse(arg, MACROTICK_ERR_SWAP_CLOCK, 0, 0);
		return -EBUSY;
	}
	if (!can_adopt(arg, table))
		return -EBUSY;
	err = mt_admit(arg, table);
	if (err)
		return err;
	adopt(table);
	if (mt_running) {
		stage(table);
		arg->swap_ns = table->grid.clock_epoch;
	} else {
		mt_publish(table, NULL);
		retire(old, table);
	}
	return 0;
}

/*
 * Counts a CPU that has changed tables. Under its run queue's lock. Returns
 * true for the last one.
 */
bool mt_swapped(void)
{
	return atomic_dec_and_test(&nr_behind);
}

/*
 * Ends a swap if the last CPU has changed tables, or the tables are halted.
 * Under mt_control. Returns whether it did.
 */
bool mt_finish_swap(void)
{
	struct macrotick_table *table = mt_staged, *old = mt_table;

	if (!table || atomic_read(&nr_behind))
		return false;
	mt_publish(table, NULL);
	retire(old, table);
	return true;
}

/*
 * Ends a swap when all CPUs are halted. If its instant has come, the swap is
 * done; otherwise it is cancelled.
 */
void mt_settle_swap(void)
{
	struct macrotick_table *table = mt_staged;

	if (!table)
		return;
	if (ktime_get_ns() >= table->epoch) {
		atomic_set(&nr_behind, 0);
		mt_finish_swap();
		return;
	}
	mt_publish(mt_table, NULL);
	mark_leaving(NULL);
	retire(table, mt_table);
}
