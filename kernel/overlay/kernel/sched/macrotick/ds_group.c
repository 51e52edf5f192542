// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: control groups with a budget.
 *
 * cpu.ds.budget	microseconds per server period. "BUDGET" is for all CPUs.
 *			With "CPULIST=BUDGET ...", other CPUs have no budget.
 * cpu.ds.priority	1 to 99; the greater one comes first.
 * cpu.ds.fifo		1: SCHED_FIFO and SCHED_RR mean SCHED_DS in the group.
 * cpu.ds.lead		microseconds by which sleeps end early, to be held.
 * cpu.ds.kthreads	kernel threads in the group, whatever their control group is.
 * cpu.ds.stat		counters, by CPU.
 *
 * The nearest group on the way up that has a budget serves a thread. Budgets,
 * windows and the bandwidth promised by SCHED_DEADLINE must fit on each CPU
 * together.
 *
 * Lock order: cgroup_mutex > cpu_hotplug_lock > mt_ds_mutex.
 */
#include <linux/cgroup.h>
#include <linux/cpu.h>
#include <linux/macrotick_sleep.h>
#include <linux/slab.h>

#include "internal.h"
#include "ds.h"

DEFINE_STATIC_KEY_FALSE(macrotick_ds_used);

/* Protects groups, the sums of their budgets, and the server period. */
static DEFINE_MUTEX(mt_ds_mutex);
static unsigned int nr_active;	/* groups with a budget */

#define MT_DS_MIN_BUDGET_US	10
#define MT_DS_MAX_LEAD_US	1000

/* Switches the hooks on, and never off again. */
static void use_servers(void)
{
	static_branch_enable_cpuslocked(&macrotick_used);
	static_branch_enable_cpuslocked(&macrotick_ds_used);
}

void mt_group_put(struct mt_group *group)
{
	if (refcount_dec_and_test(&group->ref))
		kvfree_rcu(group, rcu);
}

/**
 * mt_ds_group_of - returns the group with the budget for a thread
 * @p: the thread. Its run queue or its pi_lock is locked; or interrupts are off, and
 *	the result may soon be out of date
 * @takes_fifo: set if SCHED_FIFO means SCHED_DS in this group, or in a group on the
 *	way up to it
 *
 * Return: the group, or NULL.
 */
struct mt_group *mt_ds_group_of(struct task_struct *p, bool *takes_fifo)
{
	struct mt_group *assigned = READ_ONCE(p->macrotick.ds.assigned);
	struct task_group *tg;

	*takes_fifo = false;
	if (unlikely(assigned)) {
		*takes_fifo = READ_ONCE(assigned->takes_fifo) && READ_ONCE(assigned->nr_budgets);
		return READ_ONCE(assigned->nr_budgets) ? assigned : NULL;
	}
	for (tg = task_group(p); tg; tg = tg->parent) {
		struct mt_group *group = READ_ONCE(tg->macrotick_group);

		if (!group)
			continue;
		*takes_fifo |= READ_ONCE(group->takes_fifo);
		if (READ_ONCE(group->nr_budgets))
			return group;
	}
	return NULL;
}

static void init_server(struct mt_server *server, unsigned int priority)
{
	unsigned int i;

	server->priority = priority;
	INIT_LIST_HEAD(&server->order);
	INIT_LIST_HEAD(&server->offered);
	for (i = 0; i < MAX_RT_PRIO; i++)
		INIT_LIST_HEAD(&server->ready[i]);
}

/* Returns the group of a control group, and creates it at the first call. Under mt_ds_mutex. */
static struct mt_group *group_for(struct task_group *tg)
{
	struct mt_group *group = tg->macrotick_group;
	unsigned int cpu;

	if (group)
		return group;
	/*
	 * Only an administrator can cause this. The memory is charged like that
	 * of the control group.
	 */
	group = kvzalloc(struct_size(group, servers, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!group)
		return NULL;
	refcount_set(&group->ref, 1);
	group->priority = 1;
	for_each_possible_cpu(cpu)
		init_server(&group->servers[cpu], group->priority);
	/* A reader that finds the group finds it complete: see mt_ds_group_of(). */
	smp_store_release(&tg->macrotick_group, group);
	return group;
}

static unsigned int share_of(u64 budgets)
{
	return DIV64_U64_ROUND_UP(budgets << SCHED_CAPACITY_SHIFT, mt_ds_period);
}

/* Returns the sum of a CPU's budgets if a group gets another one. */
static u64 sum_with(const struct mt_group *group, unsigned int cpu, u64 budget)
{
	return per_cpu(mt_ds_cpus, cpu).sum - group->servers[cpu].budget + budget;
}

/* Claims the group's share of a CPU, until set_shares(), and checks it. */
static bool fits(const struct mt_group *group, unsigned int cpu, u64 budget)
{
	if (budget <= group->servers[cpu].budget)
		return true;
	WRITE_ONCE(per_cpu(mt_ds_cpus, cpu).share, share_of(sum_with(group, cpu, budget)));
	return mt_admit_budgets(cpu);
}

static void set_shares(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu(mt_ds_cpus, cpu).share, share_of(per_cpu(mt_ds_cpus, cpu).sum));
}

static void set_budget(struct mt_group *group, unsigned int cpu, u64 budget)
{
	struct rq *rq = cpu_rq(cpu);
	struct rq_flags rf;

	per_cpu(mt_ds_cpus, cpu).sum = sum_with(group, cpu, budget);
	if (group->servers[cpu].budget == budget)
		return;
	rq_lock_irqsave(rq, &rf);
	update_rq_clock(rq);
	mt_ds_set_budget(rq, &group->servers[cpu], budget);
	rq_unlock_irqrestore(rq, &rf);
}

/* Under mt_ds_mutex. */
static void count_budgets(struct mt_group *group)
{
	unsigned int cpu, n = 0;
	bool active = false;

	for_each_possible_cpu(cpu) {
		n += group->servers[cpu].budget && !group->servers[cpu].leaves;
		active |= group->servers[cpu].budget;
	}
	WRITE_ONCE(group->nr_budgets, n);
	nr_active += active - group->active;
	group->active = active;
	set_shares();
}

/*
 * Sets budgets. Under mt_ds_mutex. A budget that ends remains until the group's
 * threads have decided again. Otherwise they would be frozen, and the writing
 * thread may be one of them.
 */
static void apply(struct mt_group *group, const u64 *budgets)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		WRITE_ONCE(group->servers[cpu].leaves, !budgets[cpu]);
		if (budgets[cpu])
			set_budget(group, cpu, budgets[cpu]);
	}
	count_budgets(group);
	/* For ever: some of its threads may be in the class until they have been refreshed. */
	if (group->nr_budgets)
		use_servers();
}

/*
 * Ends the budgets that no longer serve any thread. Another writer may have set
 * one again meanwhile.
 */
static void end_budgets(struct mt_group *group)
{
	unsigned int cpu;

	guard(cpus_read_lock)();
	guard(mutex)(&mt_ds_mutex);
	for_each_possible_cpu(cpu) {
		if (group->servers[cpu].leaves)
			set_budget(group, cpu, 0);
	}
	count_budgets(group);
}

/* Claims shares of all CPUs, until set_shares(), even if they do not fit. Under mt_ds_mutex. */
static int claim(const struct mt_group *group, const u64 *budgets)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (budgets[cpu] > mt_ds_period)
			return -ERANGE;
		if (!fits(group, cpu, budgets[cpu]))
			return -EBUSY;
	}
	return 0;
}

static int install(struct task_group *tg, const u64 *budgets)
{
	struct mt_group *group;
	int err;

	guard(cpus_read_lock)();
	guard(mutex)(&mt_ds_mutex);
	group = group_for(tg);
	if (!group)
		return -ENOMEM;
	err = claim(group, budgets);
	if (err)
		set_shares();
	else
		apply(group, budgets);
	return err;
}

static void refresh_threads(struct cgroup_subsys_state *css)
{
	struct css_task_iter it;
	struct task_struct *p;

	css_task_iter_start(css, 0, &it);
	while ((p = css_task_iter_next(&it))) {
		if (mt_ds_concerns(p))
			mt_refresh(p);
	}
	css_task_iter_end(&it);
}

/* Refreshes the threads of a group and of the groups below it. */
static void refresh_subtree(struct cgroup_subsys_state *top)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css_for_each_descendant_pre(css, top) {
		if (!css_tryget_online(css))
			continue;
		rcu_read_unlock();
		refresh_threads(css);
		rcu_read_lock();
		css_put(css);
	}
	rcu_read_unlock();
}

/* Hook of cpu_cgroup_attach(): threads moved to another group. */
void mt_ds_attach(struct cgroup_taskset *tset)
{
	struct cgroup_subsys_state *css;
	struct task_struct *p;

	cgroup_taskset_for_each(p, css, tset) {
		if (mt_ds_concerns(p))
			mt_refresh(p);
	}
}

/* Hook of cpu_cgroup_css_released(): the group has no thread any longer. */
void macrotick_group_released(struct task_group *tg)
{
	struct mt_group *group = tg->macrotick_group;
	unsigned int cpu;

	if (!group)
		return;
	scoped_guard(cpus_read_lock) {
		guard(mutex)(&mt_ds_mutex);
		for_each_possible_cpu(cpu)
			group->servers[cpu].leaves = true;
		count_budgets(group);
	}
	end_budgets(group);
	tg->macrotick_group = NULL;
	mt_ds_dismiss(group);
	mt_group_put(group);
}

/* Adds "BUDGET" or "CPULIST=BUDGET" to the budgets. */
static int parse_one(char *word, u64 *budgets, struct cpumask *cpus)
{
	char *list = strsep(&word, "=");
	u64 budget;
	int cpu;

	if (!word) {
		word = list;
		cpumask_copy(cpus, cpu_possible_mask);
	} else if (cpulist_parse(list, cpus) || !cpumask_subset(cpus, cpu_possible_mask)) {
		return -EINVAL;
	}
	if (kstrtou64(word, 10, &budget))
		return -EINVAL;
	if (budget > USEC_PER_SEC || (budget && budget < MT_DS_MIN_BUDGET_US))
		return -ERANGE;
	for_each_cpu(cpu, cpus)
		budgets[cpu] = budget * NSEC_PER_USEC;
	return 0;
}

static int parse(char *text, u64 *budgets)
{
	cpumask_var_t cpus;
	char *word;
	int err = -EINVAL;

	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	while ((word = strsep(&text, " \t\n"))) {
		if (!*word)
			continue;
		err = parse_one(word, budgets, cpus);
		if (err)
			break;
	}
	free_cpumask_var(cpus);
	return err;
}

/*
 * The writer of the file may not be the process that opened it. A container
 * must not raise its own budget.
 */
static bool may_write(struct kernfs_open_file *of)
{
	return capable(CAP_SYS_NICE) && file_ns_capable(of->file, &init_user_ns, CAP_SYS_NICE);
}

static ssize_t budget_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	u64 *budgets;
	int err;

	if (!may_write(of))
		return -EPERM;
	budgets = kcalloc(nr_cpu_ids, sizeof(*budgets), GFP_KERNEL);
	if (!budgets)
		return -ENOMEM;
	err = parse(strstrip(buf), budgets);
	if (!err)
		err = install(css_tg(of_css(of)), budgets);
	kfree(budgets);
	if (err)
		return err;
	refresh_subtree(of_css(of));
	mt_ds_refresh_assigned(css_tg(of_css(of))->macrotick_group);
	end_budgets(css_tg(of_css(of))->macrotick_group);
	return length;
}

static u64 budget_on(const struct mt_group *group, unsigned int cpu)
{
	return group && !group->servers[cpu].leaves ? group->servers[cpu].budget : 0;
}

static void add_same_budget(const struct mt_group *group, unsigned int cpu, struct cpumask *cpus)
{
	unsigned int other;

	cpumask_clear(cpus);
	for_each_possible_cpu(other) {
		if (budget_on(group, other) == budget_on(group, cpu))
			cpumask_set_cpu(other, cpus);
	}
}

/* Shows the budgets in the format of a write. */
static int budget_show(struct seq_file *file, void *unused)
{
	const struct mt_group *group = READ_ONCE(css_tg(seq_css(file))->macrotick_group);
	const char *separator = "";
	cpumask_var_t cpus;
	unsigned int cpu;

	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	guard(mutex)(&mt_ds_mutex);
	for_each_possible_cpu(cpu) {
		u64 us = div_u64(budget_on(group, cpu), NSEC_PER_USEC);

		add_same_budget(group, cpu, cpus);
		if (cpumask_equal(cpus, cpu_possible_mask)) {
			seq_printf(file, "%llu", us);
			break;
		}
		if (!us || cpumask_first(cpus) != cpu)
			continue;
		seq_printf(file, "%s%*pbl=%llu", separator, cpumask_pr_args(cpus), us);
		separator = " ";
	}
	seq_putc(file, '\n');
	free_cpumask_var(cpus);
	return 0;
}

/*
 * The sleeps of served threads, lock owners included, get the level of the new
 * priority: time/timershield.
 */
static void follow_priority(const struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		struct rq_flags rf;
		struct rq *rq;

		if (READ_ONCE(p->macrotick.ds.own.group) != group &&
		    READ_ONCE(p->macrotick.ds.lent.group) != group)
			continue;
		rq = task_rq_lock(p, &rf);
		timershield_prio_changed(p, task_current(rq, p));
		task_rq_unlock(rq, p, &rf);
	}
}

static int set_priority(struct task_group *tg, unsigned int priority)
{
	struct mt_group *group;
	unsigned int cpu;

	guard(mutex)(&mt_ds_mutex);
	group = group_for(tg);
	if (!group)
		return -ENOMEM;
	WRITE_ONCE(group->priority, priority);
	for_each_possible_cpu(cpu) {
		struct rq *rq = cpu_rq(cpu);
		struct rq_flags rf;

		rq_lock_irqsave(rq, &rf);
		update_rq_clock(rq);
		mt_ds_set_priority(rq, &group->servers[cpu], priority);
		rq_unlock_irqrestore(rq, &rf);
	}
	follow_priority(group);
	return 0;
}

static ssize_t priority_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	unsigned int priority;
	int err;

	if (!may_write(of))
		return -EPERM;
	if (kstrtouint(strstrip(buf), 10, &priority))
		return -EINVAL;
	if (!priority || priority > MT_GROUP_MAX_PRIO)
		return -ERANGE;
	err = set_priority(css_tg(of_css(of)), priority);
	return err ?: length;
}

static u64 priority_read(struct cgroup_subsys_state *css, struct cftype *type)
{
	const struct mt_group *group = READ_ONCE(css_tg(css)->macrotick_group);

	return group ? READ_ONCE(group->priority) : 1;
}

static int set_fifo(struct task_group *tg, bool takes_fifo)
{
	struct mt_group *group;

	guard(cpus_read_lock)();
	guard(mutex)(&mt_ds_mutex);
	group = group_for(tg);
	if (!group)
		return -ENOMEM;
	/* SCHED_FIFO changes its meaning even without a budget. */
	if (takes_fifo)
		use_servers();
	WRITE_ONCE(group->takes_fifo, takes_fifo);
	return 0;
}

static ssize_t fifo_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	bool takes_fifo;
	int err;

	if (!may_write(of))
		return -EPERM;
	if (kstrtobool(strstrip(buf), &takes_fifo))
		return -EINVAL;
	err = set_fifo(css_tg(of_css(of)), takes_fifo);
	if (err)
		return err;
	refresh_subtree(of_css(of));
	mt_ds_refresh_assigned(css_tg(of_css(of))->macrotick_group);
	return length;
}

static u64 fifo_read(struct cgroup_subsys_state *css, struct cftype *type)
{
	const struct mt_group *group = READ_ONCE(css_tg(css)->macrotick_group);

	return group && READ_ONCE(group->takes_fifo);
}

static int set_lead(struct task_group *tg, u32 lead)
{
	struct mt_group *group;

	guard(cpus_read_lock)();
	guard(mutex)(&mt_ds_mutex);
	group = group_for(tg);
	if (!group)
		return -ENOMEM;
	/* Before the first early wake-up, which needs the hold. Never switched off. */
	if (lead)
		static_branch_enable_cpuslocked(&macrotick_leads);
	WRITE_ONCE(group->lead, lead);
	return 0;
}

static ssize_t lead_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	unsigned int us;
	int err;

	if (!may_write(of))
		return -EPERM;
	if (kstrtouint(strstrip(buf), 10, &us))
		return -EINVAL;
	if (us > MT_DS_MAX_LEAD_US)
		return -ERANGE;
	err = set_lead(css_tg(of_css(of)), us * NSEC_PER_USEC);
	return err ?: length;
}

static u64 lead_read(struct cgroup_subsys_state *css, struct cftype *type)
{
	const struct mt_group *group = READ_ONCE(css_tg(css)->macrotick_group);

	return group ? READ_ONCE(group->lead) / NSEC_PER_USEC : 0;
}

static int assign(struct task_group *tg, pid_t tid)
{
	struct mt_group *group;

	guard(cpus_read_lock)();
	guard(mutex)(&mt_ds_mutex);
	group = group_for(tg);
	if (!group)
		return -ENOMEM;
	/* The thread may exit before a budget exists. */
	use_servers();
	return mt_ds_assign(group, tid);
}

static ssize_t kthreads_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	pid_t tid;
	int err;

	if (!may_write(of))
		return -EPERM;
	if (kstrtoint(strstrip(buf), 10, &tid) || !tid || tid == INT_MIN)
		return -EINVAL;
	err = assign(css_tg(of_css(of)), tid);
	return err ?: length;
}

static int kthreads_show(struct seq_file *file, void *unused)
{
	mt_ds_show_assigned(file, READ_ONCE(css_tg(seq_css(file))->macrotick_group));
	return 0;
}

/*
 * Shows the counters without the lock of the CPU's run queue: a reader must not
 * be able to delay that CPU. A refill that the server has not noticed counts.
 */
static void show_server(struct seq_file *file, unsigned int cpu, const struct mt_server *server)
{
	const struct mt_ds_cpu *c = per_cpu_ptr(&mt_ds_cpus, cpu);
	bool refilled = READ_ONCE(server->used) && READ_ONCE(server->seen) != READ_ONCE(c->period);

	seq_printf(file, "cpu%u usage_usec=%llu refills=%llu exhaustions=%llu ", cpu,
		   div_u64(READ_ONCE(server->usage), NSEC_PER_USEC),
		   READ_ONCE(server->refills) + refilled, READ_ONCE(server->exhaustions));
	seq_printf(file, "throttled_usec=%llu reliefs=%llu\n",
		   div_u64(mt_ds_throttled(c, server), NSEC_PER_USEC), READ_ONCE(server->reliefs));
}

static int stat_show(struct seq_file *file, void *unused)
{
	const struct mt_group *group = READ_ONCE(css_tg(seq_css(file))->macrotick_group);
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (group && (group->servers[cpu].budget || group->servers[cpu].usage))
			show_server(file, cpu, &group->servers[cpu]);
	}
	return 0;
}

static struct cftype mt_ds_files[] = {
	{
		.name		= "ds.budget",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.seq_show	= budget_show,
		.write		= budget_write,
	},
	{
		.name		= "ds.priority",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.read_u64	= priority_read,
		.write		= priority_write,
	},
	{
		.name		= "ds.fifo",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.read_u64	= fifo_read,
		.write		= fifo_write,
	},
	{
		.name		= "ds.lead",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.read_u64	= lead_read,
		.write		= lead_write,
	},
	{
		.name		= "ds.kthreads",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.seq_show	= kthreads_show,
		.write		= kthreads_write,
	},
	{
		.name		= "ds.stat",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.seq_show	= stat_show,
	},
	{ }	/* terminate */
};

/**
 * mt_ds_change_period - changes the server period
 * @period: ns
 *
 * Return: 0, or -EBUSY while any group has a budget.
 */
int mt_ds_change_period(u64 period)
{
	guard(mutex)(&mt_ds_mutex);
	if (nr_active)
		return -EBUSY;
	mt_ds_set_period(period);
	return 0;
}

static int __init mt_ds_group_init(void)
{
	return cgroup_add_dfl_cftypes(&cpu_cgrp_subsys, mt_ds_files);
}
subsys_initcall(mt_ds_group_init);
