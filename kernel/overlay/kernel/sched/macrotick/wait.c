// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: threads wait for their next job, by the device's call or sched_yield(2).
 */
#include <linux/sched/signal.h>

#include "internal.h"

/*
 * Takes the job that ended a wait inside the class, without the lock: only the
 * thread itself completes it. Returns false if there is no job, or no
 * membership.
 */
static bool take_job(struct macrotick_wait *arg)
{
	struct macrotick_task *m = &current->macrotick;

	/* Pairs with begin_job(), which may be on another CPU. */
	if (!smp_load_acquire(&m->has_job))
		return false;
	arg->job = m->job;
	arg->nominal_ns = m->nominal;
	arg->lost = xchg(&m->lost, 0);
	m->in_wait = false;
	return true;
}

static void redecide_current(void)
{
	guard(raw_spinlock_irqsave)(&current->pi_lock);
	mt_redecide(current);
}

enum wait_step { WAIT_GONE, WAIT_DONE, WAIT_STOPPED, WAIT_OUTSIDE, WAIT_INSIDE };

/* Does one step of a wait: one look at the caller's state. */
static enum wait_step wait_step(bool complete, struct macrotick_wait *arg)
{
	struct macrotick_task *m = &current->macrotick;
	enum wait_step step = WAIT_INSIDE;
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(current, &rf);

	if (!m->entity) {
		step = WAIT_GONE;
		goto out;
	}
	m->at_rest = false;
	/* Or the released job was forgotten when the thread left the class. */
	if (complete || (m->state == MACROTICK_READY && !m->has_job)) {
		m->in_wait = true;
		mt_advance(rq, ktime_get());
		mt_complete_job(rq, current);
		mt_rearm(rq);
	}
	if (m->unbinding) {
		step = WAIT_STOPPED;
	} else if (!macrotick_policy(current->policy)) {
		/* At once: a start must find the thread in the class, however busy others are. */
		step = WAIT_OUTSIDE;
	} else if (m->has_job) {
		take_job(arg);
		step = WAIT_DONE;
	} else if (!mt_is_active(m->entity)) {
		step = WAIT_STOPPED;
	} else if (!mt_is_member(current)) {
		step = WAIT_OUTSIDE;
	} else {
		m->at_rest = true;
	}
out:
	task_rq_unlock(rq, current, &rf);
	/*
	 * While it rests, it has no place outside its windows. Afterwards it
	 * has its place again.
	 */
	if (unlikely(m->outside))
		redecide_current();
	return step;
}

/* Runs after the switch of sched_yield(2); not of yield(): its callers may hold locks. */
void mt_yielded(void)
{
	struct rq_flags rf;
	struct rq *rq;

	/* In the class of a waiter, sched_yield(2) has only let the thread's equals go first. */
	if (unlikely(current->macrotick.outside && !current->macrotick.pooled)) {
		rq = task_rq_lock(current, &rf);
		if (current->macrotick.entity && mt_is_member(current)) {
			mt_complete_job(rq, current);
			current->macrotick.at_rest = true;
		}
		task_rq_unlock(rq, current, &rf);
		redecide_current();
		schedule();
		redecide_current();
	}
	mt_hold();
}

/* Whether the table and the caller's entity serve it, or it is not bound any longer. */
static bool may_go_on(void)
{
	struct macrotick_task *m = &current->macrotick;
	struct rq_flags rf;
	struct rq *rq;
	bool may;

	rq = task_rq_lock(current, &rf);
	may = !m->entity || (mt_is_active(m->entity) && !m->unbinding);
	task_rq_unlock(rq, current, &rf);
	return may;
}

/*
 * Waits for the start of the table. The system call restarts if no signal
 * handler runs: a thread that is frozen, for a suspend or by its group, gets no
 * signal.
 */
static int wait_for_start(void)
{
	return wait_event_interruptible(mt_start_wait, may_go_on()) ? -ERESTARTNOHAND : 0;
}

static int end_wait(int err)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(current, &rf);

	if (current->macrotick.entity)
		mt_end_wait(rq, current);
	task_rq_unlock(rq, current, &rf);
	return err;
}

/**
 * mt_wait - completes the caller's job and waits for the next one
 * @arg: filled in with the new job
 *
 * Inside the class, the caller waits in schedule() and stays on the run queue.
 * A release then only marks it ready, which takes less time than a wake-up.
 *
 * Return: 0, or
 *
 *  * -ENOTCONN: not bound
 *  * -EINVAL: in a pool
 *  * -ESHUTDOWN: the table was removed, or the caller was unbound
 *  * -ERESTARTNOHAND: a signal; -EINTR if it is handled
 *  * -EINTR: a fatal signal
 */
int mt_wait(struct macrotick_wait *arg)
{
	bool first = true;
	int err = 0;

	if (!current->macrotick.entity)
		return -ENOTCONN;
	if (current->macrotick.pooled)
		return -EINVAL;
	if (signal_pending(current))
		return -ERESTARTNOHAND;
	for (;; first = false) {
		switch (wait_step(first, arg)) {
		case WAIT_GONE:
			return -ESHUTDOWN;
		case WAIT_DONE:
			return 0;
		case WAIT_STOPPED:
			err = wait_for_start();
			break;
		case WAIT_OUTSIDE:
			err = mt_set_policy(current);
			if (err == -ENOTCONN)	/* unbound meanwhile: look again */
				err = 0;
			break;
		case WAIT_INSIDE:
			schedule();
			if (likely(take_job(arg))) {
				if (unlikely(current->macrotick.outside))
					redecide_current();
				return 0;
			}
			break;
		}
		if (err)
			return end_wait(err);
		if (fatal_signal_pending(current))
			return end_wait(-EINTR);
	}
}
