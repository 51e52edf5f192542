// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: admission of windows, budgets and deadline tasks beside each
 * other.
 *
 * Windows and budgets come before deadline tasks. For SCHED_DEADLINE, a CPU
 * with windows or budgets has that much less capacity. Its admission gets the
 * capacity that is left (macrotick_dl_capacity()). A table or a budget is
 * refused if it would not leave the promised bandwidth, or if windows and
 * budgets do not fit together. Whether the windows alone fit on a CPU is
 * checked in table.c.
 *
 * Some other changes can also leave deadline tasks fewer CPUs, or less of them,
 * than was promised. Examples are a change of a cpuset or of the limit of
 * real-time tasks, and a CPU that goes offline. The kernel refuses such a
 * change. SCHED_DEADLINE
 * promises bandwidth for whole root domains. Tasks with a smaller cpuset are
 * checked one by one.
 *
 * Tables change under mt_control, budgets under a lock of ds_group.c. Each side
 * first claims its share and then looks at the other's. In the worst case both
 * give way.
 */
#include <linux/macrotick_cpuset.h>

#include "internal.h"
#include "ds.h"

/* Returns the share of a CPU that a table's windows take, in units of SCHED_CAPACITY_SCALE. */
static unsigned int share_in(const struct macrotick_table *table, unsigned int cpu)
{
	if (!mt_has_windows(table, cpu))
		return 0;
	return DIV64_U64_ROUND_UP(table->schedules[cpu].load << SCHED_CAPACITY_SHIFT, table->cycle);
}

/**
 * mt_reserve - reserves the windows of up to two tables against deadline tasks
 * @table: a table, or NULL
 * @staged: the table that replaces it, or NULL
 *
 * Under mt_control.
 */
void mt_reserve(const struct macrotick_table *table, const struct macrotick_table *staged)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu(mt_cpus, cpu).share,
			   max(share_in(table, cpu), share_in(staged, cpu)));
}

static unsigned int share_of_budgets(int cpu)
{
	return READ_ONCE(per_cpu(mt_ds_cpus, cpu).share);
}

/* Returns the share of a CPU that windows and budgets take. */
static unsigned int share_of(int cpu)
{
	return READ_ONCE(per_cpu(mt_cpus, cpu).share) + share_of_budgets(cpu);
}

/* Returns the same as macrotick_dl_capacity(), perhaps without one CPU. */
static unsigned long capacity_left(int cpu, int without, unsigned long capacity)
{
	unsigned long taken = 0;
	int i;

	for_each_cpu_and(i, cpu_rq(cpu)->rd->span, cpu_active_mask) {
		if (i != without)
			taken += cap_scale(share_of(i), arch_scale_cpu_capacity(i));
	}
	return capacity - min(capacity, taken);
}

/**
 * macrotick_dl_capacity - returns the capacity of a root domain without windows and budgets
 * @cpu: a CPU of the root domain
 * @capacity: the capacity of all its active CPUs
 *
 * Hook of SCHED_DEADLINE's admission.
 */
unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity)
{
	return capacity_left(cpu, -1, capacity);
}

/*
 * Returns the bandwidth promised to deadline tasks, as a share of one CPU
 * (to_ratio()). Sets @servers to that of the fair class's servers. After a
 * change of cpusets, Linux can forget the servers in the total, or dead tasks
 * that still have their bandwidth. When these give it back, the total stays
 * below zero. Then the run queues have the right numbers.
 */
static u64 promised(const struct root_domain *rd, u64 *servers)
{
	u64 tasks = 0, total = rd->dl_bw.total_bw;
	int i;

	if (unlikely((s64)total < 0))
		total = 0;
	*servers = 0;
	for_each_cpu(i, rd->span) {
		u64 server = mt_servers_bw(cpu_rq(i)), all = READ_ONCE(cpu_rq(i)->dl.this_bw);

		*servers += server;
		tasks += all - min(all, server);
	}
	return max(tasks, total - min(total, *servers));
}

#if MT_LINUX_7
/*
 * Hook of SCHED_DEADLINE's check of a CPU that is to go offline, which is still
 * active: @capacity is that of the other CPUs.
 */
unsigned long macrotick_dl_capacity_without(int cpu, unsigned long capacity)
{
	return capacity_left(cpu, cpu, capacity);
}

#else
/* Hook of SCHED_DEADLINE's check of a CPU that is to go offline: promised bandwidth must stay. */
bool macrotick_dl_promised(int cpu)
{
	u64 servers;

	return promised(cpu_rq(cpu)->rd, &servers);
}

/*
 * Hook of dl_clear_root_domain(), which counts tasks again, and must count the
 * fair class's servers, too.
 */
u64 macrotick_dl_servers(const struct root_domain *rd)
{
	u64 servers = 0;
	int i;

	for_each_cpu_and(i, rd->span, cpu_active_mask)
		servers += mt_servers_bw(cpu_rq(i));
	return servers;
}
#endif

/*
 * Whether a CPU's root domain keeps its promises under a limit. Sets @bandwidth
 * to the promised bandwidth.
 */
static bool keeps_under(unsigned int cpu, u64 limit, u64 *bandwidth)
{
	unsigned long capacity = 0;
	struct root_domain *rd;
	u64 servers;
	int i;

	guard(irqsave)();	/* keeps the root domain alive */
	rd = cpu_rq(cpu)->rd;
	for_each_cpu_and(i, rd->span, cpu_active_mask)
		capacity += arch_scale_cpu_capacity(i);
	guard(raw_spinlock)(&rd->dl_bw.lock);
	*bandwidth = promised(rd, &servers);
	return !*bandwidth ||
		cap_scale(limit, macrotick_dl_capacity(cpu, capacity)) >= *bandwidth + servers;
}

/* A cpuset that is to have these CPUs. If it is a partition, no other cpuset has them. */
struct mt_change {
	struct cgroup		*cgroup;	/* NULL: no cpuset has them */
	const struct cpumask	*cpus;
	bool			alone;
};

static bool is_inside(struct task_struct *p, const struct mt_change *change)
{
#ifdef CONFIG_CPUSETS
	return change->cgroup &&
		cgroup_is_descendant(task_cgroup(p, cpuset_cgrp_id), change->cgroup);
#else
	return false;
#endif
}

/* Computes the active CPUs that a deadline task has after a change, if there is a change. */
static void cpus_after(struct cpumask *cpus, struct task_struct *p, const struct mt_change *change)
{
	cpumask_and(cpus, &p->cpus_mask, cpu_active_mask);
	if (!change)
		return;
	if (is_inside(p, change)) {
		if (!cpumask_and(cpus, cpus, change->cpus))
			cpumask_and(cpus, change->cpus, cpu_active_mask);
	} else if (change->alone) {
		cpumask_andnot(cpus, cpus, change->cpus);
	}
}

/*
 * Whether CPUs have room for a bandwidth of SCHED_DEADLINE. CPUs without
 * windows and budgets are left to SCHED_DEADLINE itself.
 */
static bool have_room(const struct cpumask *cpus, u64 limit, u64 bandwidth)
{
	unsigned long capacity = 0, taken = 0;
	u64 servers = 0;
	int i;

	for_each_cpu(i, cpus) {
		capacity += arch_scale_cpu_capacity(i);
		taken += cap_scale(share_of(i), arch_scale_cpu_capacity(i));
		servers += mt_servers_bw(cpu_rq(i));
	}
	return !taken || cap_scale(limit, capacity - min(capacity, taken)) >= bandwidth + servers;
}

/*
 * A bound task is pinned to the CPU of its entity. It does not count, because
 * it is about to leave SCHED_DEADLINE.
 */
static bool is_deadline(struct task_struct *p)
{
	return dl_policy(READ_ONCE(p->policy)) && !READ_ONCE(p->macrotick.entity);
}

/* Returns the bandwidth of the tasks that have no other CPUs than these. */
static u64 bandwidth_on(const struct cpumask *cpus, struct cpumask *others,
			const struct mt_change *change)
{
	struct task_struct *process, *p;
	u64 sum = 0;

	for_each_process_thread(process, p) {
		if (!is_deadline(p))
			continue;
		cpus_after(others, p, change);
		if (cpumask_subset(others, cpus))
			sum += READ_ONCE(p->dl.dl_bw);
	}
	return sum;
}

/* Whether a task's CPUs, in @cpus, have room for it and for all tasks without other CPUs. */
static bool has_room_on(struct cpumask *cpus, struct cpumask *others,
			const struct mt_change *change, u64 limit)
{
	return cpumask_empty(cpus) || have_room(cpus, limit, bandwidth_on(cpus, others, change));
}

/*
 * Whether all tasks keep their bandwidth. A task that has too little even
 * without the change does not prevent it.
 */
static bool all_keep(const struct mt_change *change, int cpu, u64 limit, struct cpumask *cpus,
		     struct cpumask *others)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (!is_deadline(p))
			continue;
		cpus_after(cpus, p, change);
		if (cpu >= 0 && !cpumask_test_cpu(cpu, cpus))
			continue;
		if (has_room_on(cpus, others, change, limit))
			continue;
		cpus_after(cpus, p, NULL);
		if (change && !has_room_on(cpus, others, NULL, limit))
			continue;
		cpus_after(cpus, p, change);
		pr_info_ratelimited(
			"macrotick: CPUs %*pbl would have too little time left for %s[%d]\n",
			cpumask_pr_args(cpus), p->comm, task_pid_nr(p));
		return false;
	}
	return true;
}

/*
 * Whether all deadline tasks, or those that may run on a CPU, have the promised
 * bandwidth after a change, if there is a change.
 */
static bool tasks_keep(const struct mt_change *change, int cpu, u64 limit)
{
	cpumask_var_t cpus, others;
	bool keep = false;

	if (!zalloc_cpumask_var(&cpus, GFP_ATOMIC))
		return false;
	if (zalloc_cpumask_var(&others, GFP_ATOMIC)) {
		keep = all_keep(change, cpu, limit, cpus, others);
		free_cpumask_var(others);
	}
	free_cpumask_var(cpus);
	return keep;
}

/* Whether windows or budgets may take a part of some CPU. */
static bool is_concerned(void)
{
	return static_key_enabled(&macrotick_installed) || static_key_enabled(&macrotick_ds_used);
}

static u64 limit_now(void)
{
	return to_ratio(global_rt_period(), global_rt_runtime());
}

/**
 * macrotick_dl_keeps - checks whether deadline tasks keep the promised bandwidth
 * @cgroup: the control group whose cpuset changes; NULL: the CPUs are gone
 * @cpus: the CPUs that it will have
 * @alone: the cpuset is a partition, and no other one has these CPUs
 *
 * Called before a change of cpusets, while no root domain changes.
 */
bool macrotick_dl_keeps(struct cgroup *cgroup, const struct cpumask *cpus, bool alone)
{
	struct mt_change change = { .cgroup = cgroup, .cpus = cpus, .alone = alone };

	if (!is_concerned() || global_rt_runtime() == RUNTIME_INF)
		return true;
	return tasks_keep(&change, -1, limit_now());
}

/* Whether deadline tasks that move to a cpuset fit there, beside the tasks that it has. */
bool macrotick_dl_fits(const struct cpumask *cpus, u64 bandwidth)
{
	cpumask_var_t active, others;
	bool fits = false;

	if (!is_concerned() || global_rt_runtime() == RUNTIME_INF)
		return true;
	if (!zalloc_cpumask_var(&active, GFP_KERNEL))
		return false;
	if (zalloc_cpumask_var(&others, GFP_KERNEL)) {
		cpumask_and(active, cpus, cpu_active_mask);
		scoped_guard(rcu)
			bandwidth += bandwidth_on(active, others, NULL);
		fits = have_room(active, limit_now(), bandwidth);
		free_cpumask_var(others);
	}
	free_cpumask_var(active);
	return fits;
}

static u64 limit_in_force(void)
{
	guard(irqsave)();
	return this_rq()->rd->dl_bw.bw;
}

/*
 * Hook of sched_dl_global_validate(): checks whether another limit leaves the
 * promised bandwidth.
 */
int macrotick_dl_validate(u64 limit)
{
	u64 bandwidth;
	int cpu;

	if (!is_concerned() || global_rt_runtime() == RUNTIME_INF || limit >= limit_in_force())
		return 0;
	for_each_online_cpu(cpu) {
		if (!keeps_under(cpu, limit, &bandwidth))
			return -EBUSY;
	}
	return tasks_keep(NULL, -1, limit) ? 0 : -EBUSY;
}

/*
 * Whether a CPU's root domain keeps its promises, and tasks with fewer CPUs
 * have theirs. Sets @bandwidth to the promised bandwidth.
 */
static bool keeps_promises(unsigned int cpu, u64 *bandwidth)
{
	if (global_rt_runtime() == RUNTIME_INF)
		return true;
	/* A sleeping task may have its promise in the root domain where it fell asleep. */
	return keeps_under(cpu, limit_now(), bandwidth) && tasks_keep(NULL, cpu, limit_now());
}

/* Whether a CPU has room for its windows and its budgets. */
static bool has_room(unsigned int cpu)
{
	/* Between the claim of one's own share and the look at the other's; see above. */
	smp_mb();
	return share_of(cpu) <= SCHED_CAPACITY_SCALE * MACROTICK_CAP_PERMILLE / 1000;
}

/**
 * mt_admit_budgets - checks whether a CPU has room for budgets
 * @cpu: the CPU; the new share of its budgets is set already
 */
bool mt_admit_budgets(unsigned int cpu)
{
	u64 bandwidth;

	return has_room(cpu) && keeps_promises(cpu, &bandwidth);
}

/**
 * mt_admit - checks whether a table leaves budgets and deadline tasks their time
 * @arg: the request; gets the first window of the CPU at fault, and the per mille of one
 *	CPU that budgets or deadline tasks have there
 * @table: the decoded table
 *
 * Under mt_control, while no CPU comes or goes. From here on SCHED_DEADLINE
 * admits tasks beside both the installed table and this one, until
 * mt_reserve().
 *
 * Return: 0 or -EBUSY.
 */
int mt_admit(struct macrotick_install *arg, const struct macrotick_table *table)
{
	unsigned int cpu, first;
	u64 bandwidth;

	mt_reserve(mt_table, table);
	for_each_online_cpu(cpu) {
		if (!mt_has_windows(table, cpu))
			continue;
		first = table->schedules[cpu].windows - table->windows;
		if (share_of_budgets(cpu) && !has_room(cpu))
			mt_refuse(arg, MACROTICK_ERR_BUDGETS, first,
				  (share_of_budgets(cpu) * 1000) >> SCHED_CAPACITY_SHIFT);
		else if (!keeps_promises(cpu, &bandwidth))
			mt_refuse(arg, MACROTICK_ERR_BANDWIDTH, first,
				  (bandwidth * 1000) >> BW_SHIFT);
		else
			continue;
		mt_reserve(mt_table, mt_staged);
		return -EBUSY;
	}
	return 0;
}
