// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: kernel threads in a group.
 *
 * Control groups do not take what each CPU has one of (ksoftirqd, ktimers,
 * rcuc, ...), and nobody wants the cpusets of others for an interrupt's thread.
 * So a group has a list of kernel threads, wherever their control group is:
 * interrupts get a budget (reservation-based interrupt scheduling). A thread
 * keeps its policy: it is served if that is SCHED_DS, or SCHED_FIFO where this
 * means SCHED_DS. One without a budget left waits for the refill, which is a hard
 * interrupt's work and needs none of them.
 *
 * p->macrotick.ds.assigned holds a reference to the group, and changes under
 * the thread's pi_lock and its run queue's lock.
 */
#include <linux/pid_namespace.h>

#include "internal.h"
#include "ds.h"

/* Those of the classes above do what others wait for: migration, and the end of a CPU. */
static bool may_be_assigned(struct task_struct *p)
{
	return p->flags & PF_KTHREAD && !is_idle_task(p) && p->sched_class != &stop_sched_class;
}

/* What was assigned before is the caller's to put, after mt_refresh(). */
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

/* NULL: whatever it is assigned to. */
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
 * mt_ds_assign - a kernel thread is to be served by a group, or no longer
 * @group: the group; the caller has it
 * @tid: the thread, in the caller's PID namespace; negative: it leaves the group
 *
 * A thread of another group leaves that.
 *
 * Return: 0, -ESRCH (there is no such thread, or it is not in the group),
 * -EINVAL (not a kernel thread, or one that must not wait).
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

/* A group is removed. Nobody is assigned to it any more. */
void mt_ds_dismiss(struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (READ_ONCE(p->macrotick.ds.assigned) == group)
			release(p, group);
	}
}

/* Their group's budget, or what policy has it, is another one. */
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
 * A thread ends. Whoever assigns it is either done or, after release() had its
 * lock, sees PF_EXITING; and so does whoever decides what serves it.
 */
void mt_ds_exit(struct task_struct *p)
{
	if (unlikely(p->flags & PF_KTHREAD))
		release(p, NULL);
	if (mt_ds_concerns(p))
		mt_refresh(p);
}

/* Those of a group, by line. */
void mt_ds_show_assigned(struct seq_file *file, const struct mt_group *group)
{
	struct task_struct *process, *p;

	guard(rcu)();
	for_each_process_thread(process, p) {
		if (group && READ_ONCE(p->macrotick.ds.assigned) == group)
			seq_printf(file, "%d\n", task_pid_vnr(p));
	}
}
