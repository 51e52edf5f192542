// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: a table takes the place of the running one.
 *
 * It takes over the entities whose names both have, and with them their
 * threads, job numbers and counters. First it is staged on every CPU that
 * either table uses; then it gets its epoch, a boundary of the old table's
 * cycle that is still to come, and from then on the old table follows its clock
 * no more (sync.c). Each CPU changes tables by itself when its
 * own walk through the old one gets there (window.c). No window reaches over
 * that, so that none is cut. When the last CPU has changed, the thread of
 * miss.c makes the new table the installed one and releases the threads of
 * entities that it does not have.
 *
 * A thread must not stay in the class without windows, with locks of the
 * kernel in its hands: those of entities that leave are moved out of it by the
 * same thread at once.
 *
 * A job that began under the old table has its deadlines there and is no
 * miss under the new one (miss.c).
 */
#include "internal.h"

struct macrotick_table *mt_staged;

/* CPUs that still have the old table. */
static atomic_t nr_behind;

static bool same_cpus(const struct macrotick_served *a, const struct macrotick_served *b)
{
	return !a->roaming == !b->roaming && cpumask_equal(mt_cpus_of(a), mt_cpus_of(b));
}

/* The threads of an entity stay on its CPUs: refused where the new table has it elsewhere. */
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

/* Order and turns are the new table's at once: they decide nothing that is planned. */
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

/* Which entities of the running table the new one lacks. */
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
 * A boundary that no CPU has come to: with a lead the running table's first
 * window may be open before it. Nothing may come between the clock and the
 * other CPUs' sight of what follows from it.
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
 * mt_swap - put a table in the place of the installed one
 * @arg: the request; swap_ns is filled in
 * @table: what was decoded
 *
 * Under mt_control. A stopped table is replaced at once.
 *
 * Return: 0, -EBUSY (a swap is under way, the clock is another, an entity with
 * threads would change its CPUs, or SCHED_DEADLINE has promised what the windows
 * need, as error in @arg says). Only then the caller keeps @table.
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

/* A CPU has changed tables. Under its run queue's lock; tells whether it was the last one. */
bool mt_swapped(void)
{
	return atomic_dec_and_test(&nr_behind);
}

/* Under mt_control: if the last CPU has changed, or the tables are halted; tells whether. */
bool mt_finish_swap(void)
{
	struct macrotick_table *table = mt_staged, *old = mt_table;

	if (!table || atomic_read(&nr_behind))
		return false;
	mt_publish(table, NULL);
	retire(old, table);
	return true;
}

/* All CPUs are halted: the swap is over if its instant has come, else it never was. */
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
