// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: a table is installed, started, stopped and removed.
 *
 * One table exists at a time, for the whole host. It outlives the file
 * descriptor through which it was installed.
 */
#include <linux/cpu.h>
#include <linux/sched/task.h>

#include "internal.h"

DEFINE_RT_MUTEX(mt_control);
DEFINE_RAW_SPINLOCK(mt_table_lock);
struct macrotick_table *mt_table;
bool mt_running;
DECLARE_WAIT_QUEUE_HEAD(mt_start_wait);

/* The scheduler core asks the class only while a table is installed. */
DEFINE_STATIC_KEY_FALSE(macrotick_installed);
/* Never switched off: a thread may run on a window's time when its table is removed. */
DEFINE_STATIC_KEY_FALSE(macrotick_tt_used);

/**
 * mt_begin_control - prepares the caller to take mt_control
 *
 * A thread of the class could be frozen while it holds mt_control: until its
 * next window, or for ever if it halts the table. A thread that gets the policy
 * after this call enters the class in mt_end_control(). A thread that has the
 * policy already may only continue with a change that takes no windows away.
 *
 * Return: 0, or -EDEADLK if the caller has the policy already.
 */
int mt_begin_control(void)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(current, &rf);
	bool may = !macrotick_policy(current->policy);

	current->macrotick.controls = may;
	task_rq_unlock(rq, current, &rf);
	return may ? 0 : -EDEADLK;
}

/**
 * mt_end_control - lets the caller enter the class after it has released mt_control
 *
 * The caller must hold no lock of this class: it may be frozen in here.
 */
void mt_end_control(void)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(current, &rf);
	bool enters;

	current->macrotick.controls = false;
	enters = macrotick_membership_changed(current);
	task_rq_unlock(rq, current, &rf);
	if (unlikely(enters))
		mt_set_policy(current);
}

/* Publishes the installed and the staged table. Under mt_control. */
void mt_publish(struct macrotick_table *table, struct macrotick_table *staged)
{
	scoped_guard(raw_spinlock_irqsave, &mt_table_lock) {
		mt_table = table;
		mt_staged = staged;
	}
	mt_list_roaming(staged ?: table);
	mt_reserve(table, staged);
}

/* Returns the installed table, which is dispatched if it runs; with a reference. */
struct macrotick_table *mt_installed_table(void)
{
	guard(raw_spinlock_irqsave)(&mt_table_lock);
	if (mt_table)
		mt_table_get(mt_table);
	return mt_table;
}

/*
 * Returns the table that new members join, with a reference. During a swap,
 * entities of the old table only get no more threads.
 */
struct macrotick_table *mt_latest_table(void)
{
	struct macrotick_table *table;

	guard(raw_spinlock_irqsave)(&mt_table_lock);
	table = mt_staged ?: mt_table;
	if (table)
		mt_table_get(table);
	return table;
}

/* Whether all CPUs of a table are online: one may have gone offline since the decoding. */
static bool all_online(const struct macrotick_table *table)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (table->schedules[cpu].nr_windows && !cpu_online(cpu))
			return false;
	}
	return true;
}

/* Under mt_control, while no CPU comes or goes. */
static int install(struct macrotick_install *arg, struct macrotick_table *table)
{
	bool swap = arg->flags & MACROTICK_INSTALL_SWAP;
	int err;

	if (swap && !mt_table)
		return -ENOENT;
	if (!swap && mt_table)
		arg->error = MACROTICK_ERR_INSTALLED;
	else if (!all_online(table))
		arg->error = MACROTICK_ERR_WINDOW_CPU;
	if (arg->error)
		return -EBUSY;
	if (swap)
		return mt_swap(arg, table);
	err = mt_admit(arg, table);
	if (err)
		return err;
	mt_publish(table, NULL);
	static_branch_enable_cpuslocked(&macrotick_used);
	static_branch_enable_cpuslocked(&macrotick_tt_used);
	static_branch_inc_cpuslocked(&macrotick_installed);
	return 0;
}

int mt_install(struct macrotick_install *arg)
{
	struct macrotick_table *table = mt_table_decode(arg);
	int err;

	if (IS_ERR(table))
		return PTR_ERR(table);
	err = mt_begin_control();
	if (err && arg->flags & MACROTICK_INSTALL_SWAP) {
		mt_table_put(table);
		return err;
	}
	scoped_guard(cpus_read_lock) {
		guard(mt_control)(&mt_control);
		err = install(arg, table);
	}
	mt_end_control();
	if (err)
		mt_table_put(table);
	else
		mt_poke_groups();
	return err;
}

static unsigned int get_roaming_members(struct macrotick_served *entity,
					struct task_struct **members)
{
	struct task_struct *p;
	unsigned int n = 0;

	guard(raw_spinlock_irqsave)(&entity->roaming->lock);
	list_for_each_entry(p, &entity->threads, macrotick.member)
		members[n++] = get_task_struct(p);
	return n;
}

/* Calls the test under the lock of each thread's own run queue. */
static struct task_struct *find_roaming_member(struct macrotick_served *entity,
					       bool (*test)(struct task_struct *p))
{
	struct task_struct *members[MACROTICK_MAX_MIGRATING], *found = NULL;
	unsigned int i, n = get_roaming_members(entity, members);

	for (i = 0; i < n; i++) {
		struct task_struct *p = members[i];
		struct rq_flags rf;
		struct rq *rq = task_rq_lock(p, &rf);
		bool passes = !found && p->macrotick.entity == entity && test(p);

		task_rq_unlock(rq, p, &rf);
		if (passes)
			found = p;
		else
			put_task_struct(p);
	}
	return found;
}

/*
 * Returns the first thread of an entity that passes the test, with a reference.
 * A pool may have very many threads. Threads that do not pass therefore go
 * behind the others, and the next call does not begin with them.
 */
struct task_struct *mt_find_member(struct macrotick_served *entity,
				   bool (*test)(struct task_struct *p))
{
	struct rq *rq = cpu_rq(entity->cpu);
	struct task_struct *p, *found = NULL;
	unsigned long flags;

	if (unlikely(entity->roaming))
		return find_roaming_member(entity, test);
	local_irq_save(flags);
	raw_spin_rq_lock(rq);
	list_for_each_entry(p, &entity->threads, macrotick.member) {
		if (test(p)) {
			found = get_task_struct(p);
			break;
		}
	}
	if (found && entity->pool)
		list_rotate_to_front(&found->macrotick.member, &entity->threads);
	raw_spin_rq_unlock(rq);
	local_irq_restore(flags);
	return found;
}

static bool any_member(struct task_struct *p)
{
	return true;
}

/* Makes threads enter or leave the class, after their entity stopped or restarted. */
void mt_follow(struct macrotick_served *entity)
{
	struct task_struct *p;

	while ((p = mt_find_member(entity, macrotick_membership_changed))) {
		mt_set_policy(p);
		put_task_struct(p);
		cond_resched();
	}
}

static void follow_table(struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; i < table->nr_entities; i++)
		mt_follow(table->slots[i].entity);
}

/* Unbinds the threads of an entity that is in no table any longer. */
void mt_release_members(struct macrotick_served *entity)
{
	struct task_struct *p;

	WRITE_ONCE(entity->removed, true);
	while ((p = mt_find_member(entity, any_member))) {
		mt_unbind(p);
		put_task_struct(p);
		cond_resched();
	}
	if (entity->roaming)
		mt_unlist_roaming(entity);
}

static void dispatch_on_this_cpu(void *table)
{
	struct rq *rq = this_rq();

	raw_spin_rq_lock(rq);
	mt_dispatch(rq, table);
	raw_spin_rq_unlock(rq);
}

static void halt_on_this_cpu(void *unused)
{
	struct rq *rq = this_rq();
	struct balance_callback *head;

	raw_spin_rq_lock(rq);
	mt_halt(rq);
	head = splice_balance_callbacks(rq);
	raw_spin_rq_unlock(rq);
	if (head)
		balance_callbacks(rq, head);
}

static void on_table_cpus(struct macrotick_table *table, smp_call_func_t func)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		if (table->schedules[cpu].nr_windows)
			smp_call_function_single(cpu, func, table, true);
	}
}

/*
 * Moves an epoch forward by whole cycles, to a start that every CPU can make.
 * The epoch is on a clock that is ahead of CLOCK_MONOTONIC by the offset.
 */
u64 mt_wind_forward(u64 epoch, s64 offset, const struct macrotick_table *table)
{
	u64 earliest = ktime_get_ns() + offset + MT_START_MARGIN_NS + table->lead;

	/* With corrections, the epoch may lie before the clock's zero. */
	if ((s64)(epoch - earliest) >= 0)
		return epoch;
	return epoch + DIV64_U64_ROUND_UP(earliest - epoch, table->cycle) * table->cycle;
}

/* Changes the installed table while no CPU comes or goes. */
static int change_table(int (*change)(struct macrotick_table *table, void *arg), void *arg)
{
	int err = mt_begin_control();

	if (err)
		return err;
	scoped_guard(cpus_read_lock) {
		guard(mt_control)(&mt_control);
		err = mt_table ? change(mt_table, arg) : -ENOENT;
	}
	mt_end_control();
	return err;
}

/* Resets the job numbers. No CPU dispatches the table. */
static void number_from_zero(struct macrotick_table *table)
{
	unsigned int i;

	table->prior_cycles = 0;
	for (i = 0; i < table->nr_entities; i++)
		table->slots[i].first_job = 0;
}

static int start_table(struct macrotick_table *table, void *arg)
{
	struct macrotick_start *start = arg;
	s64 offset = mt_clock_offset(table);

	if (start->epoch_ns > ktime_get_ns() + offset + MACROTICK_MAX_CYCLE_NS)
		return -EINVAL;
	if (mt_running)
		return -EBUSY;
	WRITE_ONCE(mt_running, true);
	number_from_zero(table);
	mt_begin_routes(table);
	follow_table(table);
	/* Last: the margin is for the CPUs, not for the members. */
	start->epoch_ns = mt_wind_forward(start->epoch_ns, offset, table);
	mt_init_grid(table, start->epoch_ns, offset);
	WRITE_ONCE(table->epoch, start->epoch_ns - offset);
	on_table_cpus(table, dispatch_on_this_cpu);
	wake_up_all(&mt_start_wait);
	return 0;
}

int mt_start(struct macrotick_start *arg)
{
	int err;

	if (arg->flags)
		return -EINVAL;
	err = change_table(start_table, arg);
	/* Threads may have left a pool for a swap that was cancelled. */
	if (!err)
		mt_poke_groups();
	return err;
}

static int stop_table(struct macrotick_table *table, void *unused)
{
	if (!mt_running)
		return 0;
	on_table_cpus(table, halt_on_this_cpu);
	if (mt_staged)
		on_table_cpus(mt_staged, halt_on_this_cpu);
	WRITE_ONCE(mt_running, false);
	mt_settle_swap();
	WRITE_ONCE(mt_table->epoch, 0);
	follow_table(mt_table);
	return 0;
}

int mt_stop(void)
{
	return change_table(stop_table, NULL);
}

static int remove_table(struct macrotick_table *table, void *unused)
{
	unsigned int i;

	stop_table(table, NULL);
	table = mt_table;	/* a swap may have ended */
	for (i = 0; i < table->nr_entities; i++)
		mt_release_members(table->slots[i].entity);
	mt_forget_notify_all();
	mt_publish(NULL, NULL);
	mt_table_put(table);
	static_branch_dec_cpuslocked(&macrotick_installed);
	return 0;
}

int mt_remove(void)
{
	return change_table(remove_table, NULL);
}

/* Hook of sched_init(). */
void __init macrotick_init(void)
{
	unsigned int cpu;

	BUILD_BUG_ON(MACROTICK_PRIO != MAX_RT_PRIO - 1 - 99);
	for_each_possible_cpu(cpu)
		mt_cpu_init(per_cpu_ptr(&mt_cpus, cpu), cpu);
	macrotick_ds_init();
}
