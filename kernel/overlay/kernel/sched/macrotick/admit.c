// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: admission beside SCHED_DEADLINE.
 *
 * Windows come before deadline tasks, so that a CPU with windows is to them
 * one with so much less capacity. Their own admission is asked with what is
 * left (macrotick_dl_capacity()), and a table is refused where it would not
 * leave what was promised. That a CPU has at all room for its windows is
 * table.c's affair.
 */
#include "internal.h"
#include "ds.h"

/* What a table's windows take of a CPU, in units of SCHED_CAPACITY_SCALE. */
static unsigned int share_in(const struct macrotick_table *table, unsigned int cpu)
{
	if (!mt_has_windows(table, cpu))
		return 0;
	return DIV64_U64_ROUND_UP(mt_load(&table->schedules[cpu]) << SCHED_CAPACITY_SHIFT, table->cycle);
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
		WRITE_ONCE(per_cpu(mt_cpus, cpu).share, max(share_in(table, cpu), share_in(staged, cpu)));
}

/* What windows and budgets take of a CPU. */
static unsigned int share_of(int cpu)
{
	return READ_ONCE(per_cpu(mt_cpus, cpu).share) + READ_ONCE(per_cpu(mt_ds_cpus, cpu).share);
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
 * make Linux forget the servers in the total: then the run queues know better.
 */
static u64 promised(const struct root_domain *rd, u64 *servers)
{
	u64 tasks = 0, total = rd->dl_bw.total_bw;
	int i;

	*servers = 0;
	for_each_cpu(i, rd->span) {
		u64 server = cpu_rq(i)->fair_server.dl_bw, all = READ_ONCE(cpu_rq(i)->dl.this_bw);

		*servers += server;
		tasks += all - min(all, server);
	}
	return max(tasks, total - min(total, *servers));
}

/* Hook of SCHED_DEADLINE's look at a CPU that is to go offline: what was promised must still be there. */
bool macrotick_dl_promised(int cpu)
{
	u64 servers;

	return promised(cpu_rq(cpu)->rd, &servers);
}

/* Whether a CPU's root domain keeps its promises; else how much it has promised. */
static bool keeps_promises(unsigned int cpu, u64 *bandwidth)
{
	unsigned long capacity = 0;
	struct root_domain *rd;
	struct dl_bw *dl_b;
	u64 servers;
	int i;

	guard(irqsave)();	/* which keeps the root domain */
	rd = cpu_rq(cpu)->rd;
	for_each_cpu_and(i, rd->span, cpu_active_mask)
		capacity += arch_scale_cpu_capacity(i);
	dl_b = &rd->dl_bw;
	guard(raw_spinlock)(&dl_b->lock);
	*bandwidth = promised(rd, &servers);
	return !*bandwidth || dl_b->bw == -1 ||
		cap_scale(dl_b->bw, macrotick_dl_capacity(cpu, capacity)) >= *bandwidth + servers;
}

/* Whether deadline tasks still have what they were promised. */
bool mt_keeps_promises(unsigned int cpu)
{
	u64 bandwidth;

	return keeps_promises(cpu, &bandwidth);
}

/**
 * mt_admit - whether a table leaves deadline tasks what they were promised
 * @arg: the request; tells the first window of the CPU, and the per mille of
 *	one CPU that deadline tasks have there
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
	unsigned int cpu;
	u64 bandwidth;

	mt_reserve(mt_table, table);
	for_each_online_cpu(cpu) {
		if (!mt_has_windows(table, cpu) || keeps_promises(cpu, &bandwidth))
			continue;
		mt_reserve(mt_table, mt_staged);
		mt_refuse(arg, MACROTICK_ERR_BANDWIDTH, table->schedules[cpu].windows - table->windows,
			  (bandwidth * 1000) >> BW_SHIFT);
		return -EBUSY;
	}
	return 0;
}
