/* SPDX-License-Identifier: GPL-2.0-only */
/* Macrotick: cpusets (which create root domains) with deadline tasks beside windows and budgets. */
#ifndef _LINUX_MACROTICK_CPUSET_H
#define _LINUX_MACROTICK_CPUSET_H

#include <linux/cgroup.h>
#include <linux/cpumask.h>

#ifdef CONFIG_MACROTICK
bool macrotick_dl_keeps(struct cgroup *cgroup, const struct cpumask *cpus, bool alone);
bool macrotick_dl_fits(const struct cpumask *cpus, u64 bandwidth);
#else
static inline bool macrotick_dl_keeps(struct cgroup *cgroup, const struct cpumask *cpus, bool alone)
{
	return true;
}

static inline bool macrotick_dl_fits(const struct cpumask *cpus, u64 bandwidth) { return true; }
#endif

#endif /* _LINUX_MACROTICK_CPUSET_H */
