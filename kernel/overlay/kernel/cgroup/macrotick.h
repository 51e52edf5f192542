/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: the hooks of cpuset.c. They refuse a change that takes CPUs from
 * deadline tasks, if windows and budgets do not leave them enough elsewhere
 * (sched/macrotick/admit.c).
 */
#ifndef _KERNEL_CGROUP_MACROTICK_H
#define _KERNEL_CGROUP_MACROTICK_H

#include <linux/macrotick_cpuset.h>

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

/* Hook of cpuset_can_attach(): deadline tasks move to a cpuset, perhaps with fewer CPUs. */
static inline bool macrotick_may_attach(struct cpuset *cs, struct cpuset *from)
{
	return cpumask_subset(from->effective_cpus, cs->effective_cpus) ||
		macrotick_dl_fits(cs->effective_cpus, cs->sum_migrate_dl_bw);
}

#endif /* _KERNEL_CGROUP_MACROTICK_H */
