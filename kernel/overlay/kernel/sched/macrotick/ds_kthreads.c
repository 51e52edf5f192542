// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: kernel threads in a group.
 *
 * Control groups do not accept per-CPU kernel threads (ksoftirqd, ktimers,
 * rcuc, ...). An interrupt's thread in a control group would get the cpuset of
 * that group, which is unwanted. A group therefore has a list of kernel
 * threads, whatever their control group is. Interrupts thus get a budget
 * (reservation-based interrupt scheduling). A thread keeps its policy. The
 * group serves it if that is SCHED_DS, or SCHED_FIFO where this means SCHED_DS.
 * A thread without a budget left waits for the refill, which is a hard
 * interrupt and needs none of these threads.
 *
 * p->macrotick.ds.assigned holds a reference to the group. It changes under the
 * thread's pi_lock and its run queue's lock.
 */
#include <linux/pid_namespace.h>

#include "internal.h"
#include "ds.h"

/* Threads of the stop class do what others wait for: migration, and taking a CPU offline. */
static bool may_be_assigned(struct task_struct *p)
{
	return p->flags & PF_KTHREAD && !is_idle_task(p) && p->sched_class != &stop_sched_class;
}

/* Assigns a group. The caller puts the former group, after mt_refresh(). */
static int assign(struct task_struct *p, struct mt_group *group, struct mt_group **before)
{
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);
	int err = 0;

	/* See mt_ds_exit(). */
	if (p->flags & PF_EXITING)
		err = -ESRCH;
	else if (!may_be_assigned(p))
		err = -EINVAL;
	else
		*before = xchg(&p->macrotick.ds.assigned, group);
	task_rq_unlock(rq, p, &rf);
	return err;
}

static int move_to(struct task_struct *p, struct mt_group *group)
{
	struct mt_group *unused = group;
	int err;

	refcount_inc(&group->ref);
	err = assign(p, group, &unused);
	if (!err)
		mt_refresh(p);
	if (unused)
		mt_group_put(unused);
	return err;
}

/* Ends the assignment of a thread to a group. NULL: to any group. */
static bool release(struct task_struct *p, struct mt_group *group)
{
	struct mt_group *before;
	struct rq_flags rf;
	struct rq *rq = task_rq_lock(p, &rf);

	before = p->macrotick.ds.assigned;
	if (before && (!group || before == group))
		p->macrotick.ds.assigned = NULL;
	else
		before = NULL;
	task_rq_unlock(rq, p, &rf);
	if (!before)
		return false;
	mt_refresh(p);
	mt_group_put(before);
	return true;
}

static struct task_struct *find_get(pid_t tid)
{
	struct task_struct *p;

	guard(rcu)();
	p = find_task_by_vpid(tid);
	return p ? get_task_struct(p) : NULL;
}

/**
 * mt_ds_assign - assigns a kernel thread to a group, or ends the assignment
 * @group: the group; the caller has a reference
 * @tid: the thread, in the caller's PID namespace; negative: it leaves the group
 *
 * A thread of another group leaves that group.
 *
 * Return: 0, -ESRCH (no such thread, or it is not in the group), -EINVAL (not a
 * kernel thread, or one that must not wait).
 */
int mt_ds_assign(struct mt_group *group, pid_t tid)
{
	struct task_struct *p = find_get(abs(tid));
	int err;

	if (!p)
		return -ESRCH;
	if (tid > 0)
		err = move_to(p, group);
	else
		err = release(p, group) ? 0 : -ESRCH;
	put_task_struct(p);
	return err;
}

/* A group is removed. No call assigns threads to it any more. */
void mt_ds_dismiss(struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (READ_ONCE(p->macrotick.ds.assigned) == group)
			release(p, group);
	}
}

/* Decides again for assigned threads, after a change of the group's budget or cpu.ds.fifo. */
void mt_ds_refresh_assigned(const struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (READ_ONCE(p->macrotick.ds.assigned) == group)
			mt_refresh(p);
	}
}

/*
 * A thread exits. An assignment is complete, or sees PF_EXITING after release()
 * had the thread's lock. So does a decision about its claims.
 */
void mt_ds_exit(struct task_struct *p)
{
	if (unlikely(p->flags & PF_KTHREAD))
		release(p, NULL);
	if (mt_ds_concerns(p))
		mt_refresh(p);
}

/* Shows the threads of a group, one per line. */
void mt_ds_show_assigned(struct seq_file *file, const struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (group && READ_ONCE(p->macrotick.ds.assigned) == group)
			seq_printf(file, "%d\n", task_pid_vnr(p));
	}
}
