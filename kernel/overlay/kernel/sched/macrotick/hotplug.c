// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: CPUs go offline and come back.
 *
 * A CPU with windows does not go offline, except for a suspend, which freezes
 * threads. A thread that is awake while its CPU is away would move to another
 * run queue. The kernel refuses such a suspend.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/macrotick_cpuset.h>

#include "internal.h"

/* The kernel's own per-CPU threads are parked. */
static bool is_awake(struct task_struct *p)
{
	return !frozen(p) && !((p->flags & PF_KTHREAD) && kthread_is_per_cpu(p));
}

static bool leaves_awake(const struct macrotick_table *table, unsigned int cpu)
{
	unsigned int i;

	for (i = 0; table && i < table->nr_entities; i++) {
		struct macrotick_served *entity = table->slots[i].entity;
		struct task_struct *p = NULL;

		if (cpumask_test_cpu(cpu, mt_cpus_of(entity)))
			p = mt_find_member(entity, is_awake);
		if (!p)
			continue;
		pr_info_ratelimited(
			"macrotick: no suspend: %s[%d] of %s would be awake with CPU %u offline\n",
			p->comm, task_pid_nr(p), entity->name, cpu);
		put_task_struct(p);
		return true;
	}
	return false;
}

/* Refuses to take a CPU with windows offline; a suspend only borrows it. */
static int may_go(unsigned int cpu)
{
	guard(mt_control)(&mt_control);
	if (!mt_is_concerned(cpu))
		return 0;
	if (cpuhp_tasks_frozen)
		return leaves_awake(mt_table, cpu) || leaves_awake(mt_staged, cpu) ? -EBUSY : 0;
	pr_info_ratelimited(
		"macrotick: CPU %u stays online: the installed table has windows on it\n", cpu);
	return -EBUSY;
}

/*
 * Hook of sched_cpu_deactivate(), before anything moves off the CPU. Taking it
 * offline would take the CPU from its windows. It would also take time from
 * deadline tasks that windows and budgets on other CPUs do not leave them.
 */
int macrotick_cpu_deactivate(unsigned int cpu)
{
	int err = may_go(cpu);

	if (!err && !cpuhp_tasks_frozen && !macrotick_dl_keeps(NULL, cpumask_of(cpu), true))
		err = -EBUSY;
	return err;
}

static int cpu_is_back(unsigned int cpu)
{
	mt_resume(cpu_rq(cpu));
	return 0;
}

static int __init macrotick_hotplug_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "sched/macrotick:online",
					      cpu_is_back, NULL);

	return state < 0 ? state : 0;
}
core_initcall(macrotick_hotplug_init);
