// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: decoding a table.
 *
 * All input of user space is checked here, before anything changes. The file
 * run.c commits the result of this file, and cannot fail half-way.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/stringhash.h>

#include "internal.h"

/* Fills in the reason why a table is refused. */
int mt_refuse(struct macrotick_install *arg, enum macrotick_error error, u32 index, u32 other)
{
	arg->error = error;
	arg->error_index = index;
	arg->error_other = other;
	return -EINVAL;
}

static int decode_header(struct macrotick_install *arg)
{
	if (arg->flags & ~MACROTICK_INSTALL_SWAP || arg->reserved ||
	    !arg->nr_entities || arg->nr_entities > MACROTICK_MAX_ENTITIES ||
	    !arg->nr_windows || arg->nr_windows > MACROTICK_MAX_WINDOWS)
		return mt_refuse(arg, MACROTICK_ERR_HEADER, 0, 0);
	if (arg->clockid != CLOCK_MONOTONIC && arg->clockid != CLOCK_TAI)
		return mt_refuse(arg, MACROTICK_ERR_CLOCK, 0, 0);
	if (arg->cycle_ns < MACROTICK_MIN_WINDOW_NS ||
	    arg->cycle_ns > MACROTICK_MAX_CYCLE_NS)
		return mt_refuse(arg, MACROTICK_ERR_CYCLE, 0, 0);
	if (arg->lead_ns > MACROTICK_MAX_LEAD_NS)
		return mt_refuse(arg, MACROTICK_ERR_LEAD, 0, 0);
	return 0;
}

static struct macrotick_served *alloc_entity(const char *name)
{
	struct macrotick_served *entity = kzalloc(sizeof(*entity), GFP_KERNEL_ACCOUNT);

	if (!entity)
		return NULL;
	kref_init(&entity->ref);
	strscpy_pad(entity->name, name);
	entity->cpu = -1;
	INIT_LIST_HEAD(&entity->node);
	INIT_LIST_HEAD(&entity->threads);
	INIT_LIST_HEAD(&entity->ready);
	INIT_LIST_HEAD(&entity->contenders);
	INIT_LIST_HEAD(&entity->credits);
	INIT_LIST_HEAD(&entity->lent);
	entity->turns = RB_ROOT_CACHED;
	return entity;
}

/* Whether the flags of an entity that is not a pool are valid: at most one reaction to misses. */
static bool are_flags(u32 flags)
{
	flags &= ~MACROTICK_ENTITY_MIGRATE;
	return !flags || flags == MACROTICK_ENTITY_MISS_SIGNAL ||
		flags == MACROTICK_ENTITY_MISS_KILL;
}

/*
 * Returns the bucket of an entity's slot. The hash depends on the table's
 * address, so names cannot choose their buckets.
 */
static struct mt_slot **bucket_of(const struct macrotick_table *table, const char *name)
{
	return &table->names[hash_32(full_name_hash(table, name, strlen(name)), table->names_bits)];
}

/* Returns the slot of an entity; NULL if there is no such entity, or no table. */
struct mt_slot *mt_find_slot(const struct macrotick_table *table, const char *name)
{
	struct mt_slot *slot;

	if (!table)
		return NULL;
	for (slot = *bucket_of(table, name); slot; slot = slot->next_name) {
		if (!strcmp(slot->entity->name, name))
			return slot;
	}
	return NULL;
}

static void hash_name(struct macrotick_table *table, struct mt_slot *slot)
{
	struct mt_slot **bucket = bucket_of(table, slot->entity->name);

	slot->next_name = *bucket;
	*bucket = slot;
}

static int decode_entities(struct macrotick_install *arg,
			   const struct macrotick_entity *entities,
			   struct macrotick_table *table)
{
	u32 i;
	int err;

	for (i = 0; i < arg->nr_entities; i++) {
		const struct macrotick_entity *in = &entities[i];
		struct mt_slot *same, *slot = &table->slots[i];

		if (!in->name[0] || strnlen(in->name, sizeof(in->name)) == sizeof(in->name))
			return mt_refuse(arg, MACROTICK_ERR_ENTITY_NAME, i, 0);
		if (!(in->flags & MACROTICK_ENTITY_POOL) && !are_flags(in->flags))
			return mt_refuse(arg, MACROTICK_ERR_ENTITY_FLAGS, i, 0);
		same = mt_find_slot(table, in->name);
		if (same)
			return mt_refuse(arg, MACROTICK_ERR_ENTITY_TWICE, i, same - table->slots);
		slot->entity = alloc_entity(in->name);
		if (!slot->entity)
			return -ENOMEM;
		hash_name(table, slot);
		slot->flags = in->flags;
		slot->max_misses = in->max_misses;
		err = mt_decode_pool(arg, i, in, slot->entity);
		if (!err && in->flags & MACROTICK_ENTITY_MIGRATE)
			err = mt_alloc_roaming(slot->entity);
		if (err)
			return err;
		table->nr_roaming += !!slot->entity->roaming;
	}
	return 0;
}

/* Sync windows serve an entity without threads. Other windows thus need no test for it. */
static int alloc_sync_entity(struct macrotick_table *table)
{
	struct macrotick_served *entity = alloc_entity("(sync)");

	if (!entity)
		return -ENOMEM;
	entity->stopped = true;
	mt_sync_slot(table)->entity = entity;
	return 0;
}

static int decode_flags(struct macrotick_install *arg, u32 i, const struct macrotick_window *in)
{
	if (in->flags & MACROTICK_WINDOW_SYNC)
		return mt_check_sync(arg, i, in);
	if (in->bound_ns || in->flags & ~(MACROTICK_WINDOW_ACTIVATE | MACROTICK_WINDOW_DEADLINE))
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_FLAGS, i, 0);
	return 0;
}

static int decode_window(struct macrotick_install *arg, u32 i,
			 const struct macrotick_window *in)
{
	int err = decode_flags(arg, i, in);

	if (err)
		return err;
	if (in->cpu >= nr_cpu_ids || !cpu_online(in->cpu))
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_CPU, i, 0);
	if (in->entity >= arg->nr_entities)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_ENTITY, i, 0);
	if (in->length_ns < MACROTICK_MIN_WINDOW_NS)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_LENGTH, i, 0);
	if (in->offset_ns >= arg->cycle_ns ||
	    in->length_ns > arg->cycle_ns - in->offset_ns)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_RANGE, i, 0);
	if (i && (in[-1].cpu > in->cpu ||
		  (in[-1].cpu == in->cpu && in[-1].offset_ns >= in->offset_ns)))
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_ORDER, i, i - 1);
	if (i && in[-1].cpu == in->cpu &&
	    in[-1].offset_ns + in[-1].length_ns > in->offset_ns)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_OVERLAP, i, i - 1);
	return 0;
}

/* Returns the first earlier window of the same entity, for an error. */
static u32 first_window_of(const struct macrotick_window *windows, u32 entity)
{
	u32 i = 0;

	while (windows[i].entity != entity || windows[i].flags & MACROTICK_WINDOW_SYNC)
		i++;
	return i;
}

/* Links a window to its entity, which gets its CPU from the window. */
static int decode_service(struct macrotick_install *arg, u32 i,
			  const struct macrotick_window *windows,
			  struct macrotick_table *table)
{
	const struct macrotick_window *in = &windows[i];
	struct mt_slot *slot = &table->slots[in->entity];
	struct macrotick_served *entity = slot->entity;

	if (entity->cpu >= 0 && entity->cpu != in->cpu && !entity->roaming)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_MIGRATES, i,
			      first_window_of(windows, in->entity));
	if (entity->pool && in->flags)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_POOL, i, 0);
	if (entity->roaming)
		cpumask_set_cpu(in->cpu, entity->roaming->cpus);
	if (entity->cpu < 0)
		entity->cpu = in->cpu;
	table->windows[i].slot = slot;
	table->windows[i].job = slot->nr_releases;	/* for roaming entities see order_stops() */
	slot->nr_windows++;
	slot->nr_releases += !!(in->flags & MACROTICK_WINDOW_ACTIVATE);
	return 0;
}

/* The number of windows between two calls of cond_resched() */
#define MT_DECODE_BATCH	1024

static int decode_windows(struct macrotick_install *arg,
			  const struct macrotick_window *windows,
			  struct macrotick_table *table)
{
	u32 i;

	for (i = 0; i < arg->nr_windows; i++) {
		const struct macrotick_window *in = &windows[i];
		struct mt_schedule *schedule;
		struct mt_window *window = &table->windows[i];
		int err = decode_window(arg, i, in);

		if (err)
			return err;
		if (in->flags & MACROTICK_WINDOW_SYNC)
			window->slot = mt_sync_slot(table);
		else
			err = decode_service(arg, i, windows, table);
		if (err)
			return err;
		window->offset = in->offset_ns;
		window->end = in->offset_ns + in->length_ns;
		window->entity = window->slot->entity;
		window->flags = in->flags;
		window->bound = in->bound_ns;
		window->lead = in->flags & MACROTICK_WINDOW_ACTIVATE ? table->lead : 0;
		schedule = &table->schedules[in->cpu];
		if (!schedule->nr_windows++)
			schedule->windows = window;
		if (!(in->flags & MACROTICK_WINDOW_SYNC))
			schedule->load += in->length_ns + window->lead;
		if (!(i % MT_DECODE_BATCH))
			cond_resched();
	}
	return 0;
}

/* Returns by how much a window may become shorter. */
static u32 bound_of(const struct mt_window *w)
{
	return w->flags & MACROTICK_WINDOW_SYNC ? w->bound : 0;
}

/* Leaves a share of every CPU to the rest of the system, also in the shortest cycle. */
static int decode_capacity(struct macrotick_install *arg, struct macrotick_table *table)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct mt_schedule *schedule = &table->schedules[cpu];
		u64 cycle = arg->cycle_ns;

		for (i = 0; i < schedule->nr_windows; i++)
			cycle -= bound_of(&schedule->windows[i]);
		if (schedule->load > div_u64(cycle, 1000) * MACROTICK_CAP_PERMILLE)
			return mt_refuse(arg, MACROTICK_ERR_CAPACITY,
				      schedule->windows - table->windows, 0);
	}
	return 0;
}

static int decode_served(struct macrotick_install *arg, struct macrotick_table *table)
{
	u32 i;

	for (i = 0; i < arg->nr_entities; i++) {
		if (table->slots[i].entity->cpu < 0)
			return mt_refuse(arg, MACROTICK_ERR_ENTITY_IDLE, i, 0);
	}
	return 0;
}

static void free_entity(struct rcu_head *rcu)
{
	struct macrotick_served *entity = container_of(rcu, struct macrotick_served, rcu);

	mt_put_notify(entity->notify);
	mt_free_roaming(entity);
	kfree(entity);
}

/*
 * Frees the entity after a grace period. A borrower of its windows may put it
 * with run queues locked, and readers use it without a reference (claim.c).
 */
static void release_entity(struct kref *ref)
{
	call_rcu(&container_of(ref, struct macrotick_served, ref)->rcu, free_entity);
}

void mt_entity_put(struct macrotick_served *entity)
{
	kref_put(&entity->ref, release_entity);
}

static void put_entities(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; table->slots && i <= table->nr_entities; i++) {
		if (table->slots[i].entity)
			mt_entity_put(table->slots[i].entity);
	}
}

static void free_table(struct macrotick_table *table)
{
	put_entities(table);
	kvfree(table->slots);
	kvfree(table->names);
	kvfree(table->roaming);
	kvfree(table->stops);
	kvfree(table->windows);
	kvfree(table);
}

static struct macrotick_table *alloc_table(const struct macrotick_install *arg)
{
	struct macrotick_table *table;

	table = kvzalloc(struct_size(table, schedules, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	table->slots = kvcalloc(arg->nr_entities + 1, sizeof(*table->slots), GFP_KERNEL_ACCOUNT);
	table->windows = kvcalloc(arg->nr_windows, sizeof(*table->windows), GFP_KERNEL_ACCOUNT);
	table->nr_entities = arg->nr_entities;
	table->nr_windows = arg->nr_windows;
	table->names_bits = order_base_2(arg->nr_entities + 1);
	table->names = kvcalloc(1U << table->names_bits, sizeof(*table->names), GFP_KERNEL_ACCOUNT);
	if (!table->slots || !table->windows || !table->names) {
		free_table(table);
		return NULL;
	}
	kref_init(&table->ref);
	table->cycle = arg->cycle_ns;
	table->lead = arg->lead_ns;
	table->follows = arg->clockid == CLOCK_TAI;
	raw_spin_lock_init(&table->grid.lock);
	return table;
}

static struct macrotick_table *decode(struct macrotick_install *arg,
				      const struct macrotick_entity *entities,
				      const struct macrotick_window *windows)
{
	struct macrotick_table *table = alloc_table(arg);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	err = decode_entities(arg, entities, table);
	if (!err && table->follows)
		err = alloc_sync_entity(table);
	if (!err)
		err = decode_windows(arg, windows, table);
	if (!err && table->follows)
		err = mt_decode_sync(arg, table);
	if (!err)
		err = mt_decode_leads(arg, table);
	if (!err)
		err = mt_decode_routes(arg, table);
	if (!err)
		err = decode_served(arg, table);
	if (!err)
		err = decode_capacity(arg, table);
	if (err) {
		free_table(table);
		return ERR_PTR(err);
	}
	return table;
}

/**
 * mt_table_decode - checks a whole table and builds it
 * @arg: the request; error, error_index and error_other return the fault
 *
 * Return: the table, with one reference, or an error pointer: -EINVAL with the
 * reason in @arg, -EFAULT, -ENOMEM.
 */
struct macrotick_table *mt_table_decode(struct macrotick_install *arg)
{
	struct macrotick_table *table;
	struct macrotick_entity *entities;
	struct macrotick_window *windows;
	int err = decode_header(arg);

	if (err)
		return ERR_PTR(err);
	entities = vmemdup_array_user(u64_to_user_ptr(arg->entities),
				      arg->nr_entities, sizeof(*entities));
	if (IS_ERR(entities))
		return ERR_CAST(entities);
	windows = vmemdup_array_user(u64_to_user_ptr(arg->windows),
				     arg->nr_windows, sizeof(*windows));
	if (IS_ERR(windows)) {
		kvfree(entities);
		return ERR_CAST(windows);
	}
	table = decode(arg, entities, windows);
	kvfree(windows);
	kvfree(entities);
	return table;
}

static void release_table(struct kref *ref)
{
	free_table(container_of(ref, struct macrotick_table, ref));
}

void mt_table_put(struct macrotick_table *table)
{
	kref_put(&table->ref, release_table);
}
