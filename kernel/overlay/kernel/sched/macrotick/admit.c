// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: admission of windows, budgets and deadline tasks beside each other.
 *
 * Windows and budgets come before deadline tasks, so that a CPU with them is to
 * those one with so much less capacity. Their own admission is asked with what
 * is left (macrotick_dl_capacity()), and a table, or a budget, is refused where
 * it would not leave what was promised, or where there is not room for both.
 * That a CPU has at all room for its windows is table.c's affair.
 *
 * Nor is a change taken that leaves deadline tasks fewer CPUs, or less of them,
 * than they were promised beside windows and budgets: of a cpuset, of the limit
 * of real-time tasks, a CPU that goes off line. SCHED_DEADLINE promises for whole
 * root domains; tasks whose cpuset is smaller than that are looked at by themselves.
 *
 * Tables come under mt_control, budgets under a lock of ds_group.c: each side
 * claims its share first and then looks at the other's. At worst both give way.
 */
#include <linux/macrotick_cpuset.h>

#include "internal.h"
#include "ds.h"

/* What a table's windows take of a CPU, in units of SCHED_CAPACITY_SCALE. */
static unsigned int share_in(const struct macrotick_table *table, unsigned int cpu)
{
	if (!mt_has_windows(table, cpu))
		return 0;
	return DIV64_U64_ROUND_UP(table->schedules[cpu].load << SCHED_CAPACITY_SHIFT, table->cycle);
}

/**
 * mt_reserve - have the windows of up to two tables kept free of deadline tasks
 * @table: a table, or NULL
 * @staged: the one that takes its place, or NULL
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

/* What windows and budgets take of a CPU. */
static unsigned int share_of(int cpu)
{
	return READ_ONCE(per_cpu(mt_cpus, cpu).share) + share_of_budgets(cpu);
}

/**
 * macrotick_dl_capacity - what windows and budgets leave of the capacity of a root domain
 * @cpu: a CPU of it
 * @capacity: that of all its active CPUs
 *
 * Hook of SCHED_DEADLINE's admission.
 */
unsigned long macrotick_dl_capacity(int cpu, unsigned long capacity)
{
	unsigned long taken = 0;
	int i;

	for_each_cpu_and(i, cpu_rq(cpu)->rd->span, cpu_active_mask)
		taken += cap_scale(share_of(i), arch_scale_cpu_capacity(i));
	return capacity - min(capacity, taken);
}

/*
 * What deadline tasks were promised, as a share of one CPU (to_ratio()), and
 * what the servers of the fair class have beside it. A change of cpusets can
 * make Linux forget the servers in the total, or those of its tasks that are
 * dead and still have their bandwidth: when they give it back, the total is below
 * zero for good. Then the run queues know better.
 */
static u64 promised(const struct root_domain *rd, u64 *servers)
{
	u64 tasks = 0, total = rd->dl_bw.total_bw;
	int i;

	if (unlikely((s64)total < 0))
		total = 0;
	*servers = 0;
	for_each_cpu(i, rd->span) {
		u64 server = cpu_rq(i)->fair_server.dl_bw, all = READ_ONCE(cpu_rq(i)->dl.this_bw);

		*servers += server;
		tasks += all - min(all, server);
	}
	return max(tasks, total - min(total, *servers));
}

/* Hook of SCHED_DEADLINE's look at a CPU that is to go offline: what was promised must stay. */
bool macrotick_dl_promised(int cpu)
{
	u64 servers;

	return promised(cpu_rq(cpu)->rd, &servers);
}

/* Hook of dl_clear_root_domain(): what counts tasks anew counts the fair class's servers, too. */
u64 macrotick_dl_servers(const struct root_domain *rd)
{
	u64 servers = 0;
	int i;

	for_each_cpu_and(i, rd->span, cpu_active_mask)
		servers += cpu_rq(i)->fair_server.dl_bw;
	return servers;
}

/* Whether a CPU's root domain keeps its promises under a limit; else how much it has promised. */
static bool keeps_under(unsigned int cpu, u64 limit, u64 *bandwidth)
{
	unsigned long capacity = 0;
	struct root_domain *rd;
	u64 servers;
	int i;

	guard(irqsave)();	/* which keeps the root domain */
	rd = cpu_rq(cpu)->rd;
	for_each_cpu_and(i, rd->span, cpu_active_mask)
		capacity += arch_scale_cpu_capacity(i);
	guard(raw_spinlock)(&rd->dl_bw.lock);
	*bandwidth = promised(rd, &servers);
	return !*bandwidth ||
		cap_scale(limit, macrotick_dl_capacity(cpu, capacity)) >= *bandwidth + servers;
}

/* A cpuset is to have these CPUs; where it is a partition, no other one has them besides. */
struct mt_change {
	struct cgroup		*cgroup;	/* NULL: nobody has them */
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

/* The active CPUs that a deadline task has after a change, if there is to be one. */
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
 * Whether CPUs have room for so much under SCHED_DEADLINE. Those that neither
 * windows nor budgets take a part of are its own affair.
 */
static bool have_room(const struct cpumask *cpus, u64 limit, u64 bandwidth)
{
	unsigned long capacity = 0, taken = 0;
	u64 servers = 0;
	int i;

	for_each_cpu(i, cpus) {
		capacity += arch_scale_cpu_capacity(i);
		taken += cap_scale(share_of(i), arch_scale_cpu_capacity(i));
		servers += cpu_rq(i)->fair_server.dl_bw;
	}
	return !taken || cap_scale(limit, capacity - min(capacity, taken)) >= bandwidth + servers;
}

/* One that is bound to an entity, and to its CPU with that, is about to leave SCHED_DEADLINE. */
static bool is_deadline(struct task_struct *p)
{
	return dl_policy(READ_ONCE(p->policy)) && !READ_ONCE(p->macrotick.entity);
}

/* What tasks have that have no CPUs but these. */
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

/* Whether a task's CPUs, in @cpus, have room for it and all that have no others. */
static bool has_room_on(struct cpumask *cpus, struct cpumask *others,
			const struct mt_change *change, u64 limit)
{
	return cpumask_empty(cpus) || have_room(cpus, limit, bandwidth_on(cpus, others, change));
}

/* Tasks that have too little anyway are in nobody's way. */
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
			"macrotick: too little would be left of CPUs %*pbl for %s[%d]\n",
			cpumask_pr_args(cpus), p->comm, task_pid_nr(p));
		return false;
	}
	return true;
}

/*
 * Whether every deadline task, or those that may run on a CPU, have what they
 * were promised: after a change, if there is one.
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

/* Whether anything of ours takes a part of some CPU. */
static bool is_concerned(void)
{
	return static_key_enabled(&macrotick_installed) || static_key_enabled(&macrotick_ds_used);
}

static u64 limit_now(void)
{
	return to_ratio(global_rt_period(), global_rt_runtime());
}

/**
 * macrotick_dl_keeps - whether deadline tasks keep what they were promised
 * @cgroup: whose cpuset changes; NULL: the CPUs are gone
 * @cpus: what it is to have
 * @alone: it is a partition, and nobody else has them
 *
 * Asked before a change of cpusets, with no root domain changing.
 */
bool macrotick_dl_keeps(struct cgroup *cgroup, const struct cpumask *cpus, bool alone)
{
	struct mt_change change = { .cgroup = cgroup, .cpus = cpus, .alone = alone };

	if (!is_concerned() || global_rt_runtime() == RUNTIME_INF)
		return true;
	return tasks_keep(&change, -1, limit_now());
}

/* Whether there is room for deadline tasks that come to a cpuset, beside those that are there. */
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

/* Hook of sched_dl_global_validate(): does another limit leave what was promised? */
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
 * have theirs; else how much it has promised.
 */
static bool keeps_promises(unsigned int cpu, u64 *bandwidth)
{
	if (global_rt_runtime() == RUNTIME_INF)
		return true;
	/* A sleeping task may be promised its share in the root domain where it went to sleep. */
	return keeps_under(cpu, limit_now(), bandwidth) && tasks_keep(NULL, cpu, limit_now());
}

/* Whether there is room on a CPU for its windows and its budgets. */
static bool has_room(unsigned int cpu)
{
	/* Between claiming one's own share and looking at the other's; see above. */
	smp_mb();
	return share_of(cpu) <= SCHED_CAPACITY_SCALE * MACROTICK_CAP_PERMILLE / 1000;
}

/**
 * mt_admit_budgets - whether a CPU has room for budgets
 * @cpu: the CPU, whose budgets' new share is set already
 */
bool mt_admit_budgets(unsigned int cpu)
{
	u64 bandwidth;

	return has_room(cpu) && keeps_promises(cpu, &bandwidth);
}

/**
 * mt_admit - whether a table leaves groups their budgets, and deadline tasks what was promised
 * @arg: the request; tells the first window of the CPU, and the per mille of
 *	one CPU that budgets or deadline tasks have there
 * @table: what was decoded
 *
 * Under mt_control, with no CPU coming or going. From here on deadline tasks
 * are admitted beside both the installed table and this one, until
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
