// SPDX-License-Identifier: GPL-2.0-only
/*
 * TimerShield: the switch (timershield=1, kernel.timershield), the longest
 * delay of the tick (kernel.timershield_tick_delay_us), and the counters
 * (timershield in debugfs).
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>

#include "control.h"

static bool wanted __initdata;

static int __init timershield_setup(char *text)
{
	return !kstrtobool(text, &wanted);
}
__setup("timershield=", timershield_setup);

static int timershield_sysctl(const struct ctl_table *table, int write, void *buffer,
			      size_t *length, loff_t *offset)
{
	u8 on = timershield_get();
	struct ctl_table copy = *table;
	int ret;

	copy.data = &on;
	ret = proc_dou8vec_minmax(&copy, write, buffer, length, offset);
	if (!ret && write)
		timershield_set(on);
	return ret;
}

/* With a longer delay, work that goes by jiffies would be affected. */
static unsigned int longest_tick_delay_us = 20000;

static struct ctl_table timershield_sysctls[] = {
	{
		.procname	= "timershield",
		.maxlen		= sizeof(u8),
		.mode		= 0644,
		.proc_handler	= timershield_sysctl,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
	{
		.procname	= "timershield_tick_delay_us",
		.data		= &timershield_tick_delay_us,
		.maxlen		= sizeof(unsigned int),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= &longest_tick_delay_us,
	},
};

static int timershield_show(struct seq_file *m, void *unused)
{
	unsigned int cpu;

	seq_puts(m, "cpu pending served deferred masked stopped moved\n");
	for_each_online_cpu(cpu) {
		const struct ts_stats *s = per_cpu_ptr(&ts_stats, cpu);

		seq_printf(m, "%u %u %llu %llu %llu %llu %llu\n", cpu, timershield_pending(cpu),
			   s->served, s->deferred, s->masked, s->stopped, s->moved);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(timershield);

static int __init timershield_begin(void)
{
	timershield_init();
	register_sysctl_init("kernel", timershield_sysctls);
	debugfs_create_file("timershield", 0444, NULL, NULL, &timershield_fops);
	if (wanted)
		timershield_set(true);
	return 0;
}
late_initcall(timershield_begin);
