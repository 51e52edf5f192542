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
 * Tables come under mt_control, budgets under a lock of ds_group.c: each side
 * claims its share first and then looks at the other's. At worst both give way.
 */
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
		WRITE_ONCE(per_cpu(mt_cpus, cpu).share, max(share_in(table, cpu), share_in(staged, cpu)));
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
 * mt_admit - whether a table leaves groups their budgets, and deadline tasks what they were promised
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
			mt_refuse(arg, MACROTICK_ERR_BANDWIDTH, first, (bandwidth * 1000) >> BW_SHIFT);
		else
			continue;
		mt_reserve(mt_table, mt_staged);
		return -EBUSY;
	}
	return 0;
}
