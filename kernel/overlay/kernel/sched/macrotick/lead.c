// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the lead.
 *
 * What lies between the timer's interrupt and the first instruction of a job
 * takes a time that varies with what else the processor has to do then. With
 * a lead the window of a job opens early, while no other window is open; the
 * thread comes as far as the end of its wait, and is held there, with
 * interrupts and preemption on, until the nominal instant.
 *
 * A job leads only where all of its entity's threads are done: one that is
 * not would get more than its windows.
 */
#include <linux/resume_user_mode.h>

#include "internal.h"

static u64 gap_before(const struct macrotick_table *table, const struct mt_schedule *s,
		      unsigned int i, unsigned int prev)
{
	return s->windows[i].offset + (i ? 0 : table->cycle) - s->windows[prev].end;
}

/* Between a window with a lead and the one before it, around the cycle. */
int mt_decode_leads(struct macrotick_install *arg, struct macrotick_table *table)
{
	unsigned int cpu, i, prev;

	for_each_possible_cpu(cpu) {
		const struct mt_schedule *s = &table->schedules[cpu];

		for (i = 0; i < s->nr_windows; i++) {
			prev = (i ?: s->nr_windows) - 1;
			if (gap_before(table, s, i, prev) < s->windows[i].lead)
				return mt_refuse(arg, MACROTICK_ERR_WINDOW_LEAD,
						 &s->windows[i] - table->windows,
						 &s->windows[prev] - table->windows);
		}
	}
	return 0;
}

/* A job is complete: what mt_hold() saw of it. */
void mt_note_hold(struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	m->entity->held += m->held;
	m->entity->late += m->late;
	m->held = 0;
	m->late = false;
}

/* What the switch to the caller left to do on its way to user space (rseq): not behind the hold. */
void mt_pass_door(void)
{
	if (test_thread_flag(TIF_NOTIFY_RESUME))
		resume_user_mode_work(NULL);
}

void mt_hold_until(u64 instant)
{
	while (ktime_get_ns() < instant) {
		cpu_relax();
		cond_resched();
	}
}

/**
 * mt_hold - hold the caller, whose job was released early
 *
 * Also the hook of sched_yield(2). Bounded by the lead: the clock does not
 * care what becomes of the table meanwhile.
 */
void mt_hold(void)
{
	struct macrotick_task *m = &current->macrotick;
	u64 now;

	if (likely(!READ_ONCE(m->hold)))
		return;
	m->hold = false;
	mt_pass_door();
	now = ktime_get_ns();
	m->late = now >= m->nominal;
	if (m->late)
		return;
	m->held = m->nominal - now;
	mt_hold_until(m->nominal);
}
