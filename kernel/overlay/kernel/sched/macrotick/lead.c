// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the lead.
 *
 * The time from the timer's interrupt to the first instruction of a job varies
 * with the other work of the CPU. With a lead, the window of a job opens early,
 * while no other window is open. The thread runs to the end of its wait. The
 * kernel holds it there, with interrupts and preemption on, until the nominal
 * instant.
 *
 * A job only leads if all threads of its entity have completed their jobs.
 * Otherwise an unfinished job would get more time than its windows.
 */
#include <linux/resume_user_mode.h>

#include "internal.h"

static u64 gap_before(const struct macrotick_table *table, const struct mt_schedule *s,
		      unsigned int i, unsigned int prev)
{
	return s->windows[i].offset + (i ? 0 : table->cycle) - s->windows[prev].end;
}

/* Checks the gap between a window with a lead and the window before it, around the cycle. */
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

/* Counts the hold of a job that is complete. */
void mt_note_hold(struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	m->entity->held += m->held;
	m->entity->late += m->late;
	m->held = 0;
	m->late = false;
}

/* Does the work of the return to user space (rseq) early: it must not come after the hold. */
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
 * mt_hold - holds the caller if its job was released early
 *
 * Also the hook of sched_yield(2). The hold is bounded by the lead: it follows
 * the clock, whatever happens to the table meanwhile.
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
