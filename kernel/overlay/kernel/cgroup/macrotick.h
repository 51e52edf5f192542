/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the hooks of cpuset.c. They refuse a change that takes CPUs from
 * deadline tasks, if windows and budgets do not leave them enough elsewhere
 * (sched/macrotick/admit.c).
 */
#ifndef _KERNEL_CGROUP_MACROTICK_H
#define _KERNEL_CGROUP_MACROTICK_H

#include <linux/macrotick_cpuset.h>
#include <linux/sched/deadline.h>

#include "cpuset-internal.h"

/*
 * Returns the CPUs that only this cpuset would have as a partition, whether or
 * not they were named.
 */
static inline const struct cpumask *macrotick_xcpus(const struct cpuset *cs)
{
	if (!cpumask_empty(cs->effective_xcpus))
		return cs->effective_xcpus;
	return cpumask_empty(cs->exclusive_cpus) ? cs->cpus_allowed : cs->exclusive_cpus;
}

/* Hook of validate_change(). The change may make an invalid partition valid. */
static inline bool macrotick_may_change(struct cpuset *cur, struct cpuset *trial)
{
	bool alone = cur->partition_root_state;
	const struct cpumask *cpus = alone ? macrotick_xcpus(trial) : trial->cpus_allowed;

	if (cpumask_equal(cur->cpus_allowed, trial->cpus_allowed) &&
	    cpumask_equal(cur->exclusive_cpus, trial->exclusive_cpus))
		return true;
	return cpumask_empty(cpus) || macrotick_dl_keeps(cur->css.cgroup, cpus, alone);
}

/* Hook of update_prstate(), before any change. */
static inline bool macrotick_may_part(struct cpuset *cs, int state)
{
	return state <= 0 || macrotick_dl_keeps(cs->css.cgroup, macrotick_xcpus(cs), true);
}

/*
 * Hook of cpuset_can_attach(): deadline tasks move to a cpuset, perhaps with
 * fewer CPUs. If they move to several ones, these have the CPUs of the old one.
 */
static inline bool macrotick_may_attach(struct cgroup_taskset *tset)
{
	struct cgroup_subsys_state *css;
	const struct cpuset *to = NULL;
	struct task_struct *p;
	u64 bandwidth = 0;

	cgroup_taskset_for_each(p, css, tset) {
		const struct cpuset *from = css_cs(task_css(p, cpuset_cgrp_id));
		const struct cpuset *next = css_cs(css);

		if (!dl_task(p) || cpumask_subset(from->effective_cpus, next->effective_cpus))
			continue;
		to = next;
		bandwidth += p->dl.dl_bw;
	}
	return !to || macrotick_dl_fits(to->effective_cpus, bandwidth);
}

#endif /* _KERNEL_CGROUP_MACROTICK_H */
