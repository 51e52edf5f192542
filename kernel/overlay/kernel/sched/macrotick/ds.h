/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: SCHED_DS, groups served by deferrable servers.
 *
 * ds_server.c  budgets: what runs is charged, servers close and are refilled
 * ds_class.c   the scheduling class, between that of windows and deadline
 * ds_inherit.c which group's budget serves a thread
 * ds_group.c   the files of the cpu controller, admission
 * ds_kthreads.c kernel threads in a group
 * ds_lead.c    threads of a group that are woken up early, and held
 * ds_relief.c  threads that their group keeps inside the kernel
 *
 * A control group with a budget is a group here, and has a server on each CPU.
 * All budgets are refilled at the same instants, a phase behind the multiples of
 * one period on CLOCK_MONOTONIC. A server is open while it has budget left: then the
 * priority of its group decides against the others, and its first thread runs.
 * A closed server's threads stay on the run queue and do not count as runnable.
 * It is the servers that are taken up and put down, never single threads.
 *
 * Lock order: mt_ds_mutex > p->pi_lock > rq lock > mt_ds_watch_lock. Everything
 * of a server is protected by its CPU's run queue's lock.
 */
#ifndef _KERNEL_SCHED_MACROTICK_DS_H
#define _KERNEL_SCHED_MACROTICK_DS_H

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/mmu_context.h>
#include <linux/refcount.h>

#include "../sched.h"
#include "../../locking/rtmutex_common.h"

/* Of groups, 1 to 99: the greater one comes first. */
#define MT_GROUP_PRIOS		100
#define MT_GROUP_MAX_PRIO	(MT_GROUP_PRIOS - 1)

struct mt_server {
	unsigned int		priority;	/* its group's */
	u64			budget;		/* ns per period; zero: it serves nobody */
	s64			left;
	u64			debt;		/* used on credit, and not yet paid */
	bool			open;		/* something is left */
	bool			touched;	/* it must be refilled: in its CPU's touched */
	unsigned int		nr_ready;
	struct list_head	order;		/* open, with ready threads: among those of its priority */
	struct list_head	refill;		/* in its CPU's touched */
	struct list_head	node;		/* in its CPU's servers */
	struct list_head	contenders;	/* ready threads that may be blocked on a lock */
	struct list_head	crowd;		/* in its CPU's crowded: closed, with contenders */
	unsigned int		nr_urgent;	/* of its threads in its CPU's urgent */
	DECLARE_BITMAP(prios, MAX_RT_PRIO);	/* queues that have threads */
	struct list_head	ready[MAX_RT_PRIO];
	u64			closed;		/* since when, on CLOCK_MONOTONIC */
	u64			usage;
	u64			throttled;	/* closed with ready threads */
	u64			refills;
	u64			exhaustions;
	u64			reliefs;
};

/* It lives as long as its control group, or a thread that it serves. */
struct mt_group {
	struct rcu_head		rcu;
	refcount_t		ref;
	unsigned int		priority;	/* 1 to MT_GROUP_MAX_PRIO */
	u32			lead;		/* ns */
	bool			takes_fifo;	/* SCHED_FIFO and SCHED_RR mean SCHED_DS in it */
	unsigned int		nr_budgets;	/* CPUs with a budget; under mt_ds_mutex */
	struct mt_server	servers[];	/* by CPU */
};

/* The servers of one CPU. */
struct mt_ds_cpu {
	unsigned int		cpu;
	DECLARE_BITMAP(prios, MT_GROUP_PRIOS + 1);	/* by MT_GROUP_MAX_PRIO - priority; the last is always set */
	struct list_head	order[MT_GROUP_PRIOS];
	struct list_head	servers;	/* all with a budget */
	struct list_head	touched;
	struct list_head	urgent;		/* threads served on credit, by rank */
	struct list_head	crowded;	/* servers, see there */
	struct list_head	watched;	/* threads, under mt_ds_watch_lock */
	struct list_head	waiting;	/* all ready threads */
	u64			next_look;	/* when to look for starved ones among them */
	struct mt_server	*charged;	/* whose thread runs */
	bool			catching_up;	/* the timer is programmed then */
	u64			refill;		/* when; U64_MAX: nothing was touched */
	u64			limit;		/* when a server is exhausted at the earliest */
	struct mt_server	*limited;	/* which: an open one, that runs or is going to; or NULL */
	u64			foreseen;	/* when that was reckoned, before it runs; else zero */
	u64			lag;		/* how much later it runs */
	u64			poll;		/* when to look at contenders and starved ones; U64_MAX: never */
	u64			poll_ns;
	u64			armed;		/* expiry of the timer; U64_MAX: none */
	struct hrtimer		timer;
	struct irq_work		work;
	u64			sum;		/* of all budgets; under mt_ds_mutex */
	unsigned int		share;		/* of the CPU, that they take: see admit.c */
};

DECLARE_PER_CPU(struct mt_ds_cpu, mt_ds_cpus);

static inline struct mt_ds_cpu *mt_ds_cpu_of(struct rq *rq)
{
	return per_cpu_ptr(&mt_ds_cpus, cpu_of(rq));
}

/* Whether the class has something to run. */
static inline bool mt_ds_is_ready(const struct mt_ds_cpu *c)
{
	return sched_find_first_bit(c->prios) < MT_GROUP_PRIOS || unlikely(!list_empty(&c->urgent));
}

/* Whether contenders of closed servers have to be looked at. */
static inline bool mt_ds_has_contenders(const struct mt_ds_cpu *c)
{
	return !list_empty(&c->urgent) || !list_empty(&c->crowded);
}

/* Whether anybody on a CPU would have to be decided anew; a hint. */
static inline bool mt_ds_watches(const struct mt_ds_cpu *c)
{
	return !list_empty(&c->watched);
}

/* ns; change with no group active only. */
extern u64 mt_ds_period;
extern unsigned int mt_ds_phase;

/* ds_server.c */
struct task_struct *mt_ds_first(const struct mt_ds_cpu *c);
void mt_ds_link(struct rq *rq, struct mt_server *server, struct task_struct *p, bool head);
void mt_ds_unlink(struct rq *rq, struct task_struct *p);
void mt_ds_requeue(struct task_struct *p);
void mt_ds_rank_again(struct rq *rq);
void mt_ds_begin(struct rq *rq, struct task_struct *p);
void mt_ds_go_on(struct rq *rq);
void mt_ds_end(struct rq *rq, struct task_struct *p);
void mt_ds_account(struct rq *rq);
void mt_ds_offline(struct rq *rq);
void mt_ds_set_budget(struct rq *rq, struct mt_server *server, u64 budget);
void mt_ds_set_priority(struct rq *rq, struct mt_server *server, unsigned int priority);

/* ds_inherit.c */
void mt_ds_decide(struct rq *rq, struct task_struct *p, int policy, int normal_prio, struct task_struct *donor,
		  int *prio);
void mt_ds_refresh(struct task_struct *p);
bool mt_ds_settle(struct rq *rq);
void mt_ds_watch_here(struct mt_ds_cpu *c, struct task_struct *p, bool stray);
void mt_ds_forget(struct task_struct *p);

/* ds_relief.c */
void mt_ds_relieve(struct rq *rq);

/* Under the lock of the run queue, its clock up to date. */
static inline bool mt_ds_look_is_due(struct rq *rq)
{
	const struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	return rq_clock(rq) >= c->next_look && !list_empty(&c->waiting);
}

static inline void mt_ds_count_anew(struct task_struct *p, u64 now)
{
	p->macrotick.ds.waits_since = now;
	p->macrotick.ds.ran_then = p->se.sum_exec_runtime;
	p->macrotick.ds.slept_then = p->nvcsw;
}

/*
 * It is ready, and may not get to run. Who was taken off the queue and put
 * back is looked at first; who slept, whatever its class was, waits anew.
 */
static inline void mt_ds_wait(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	if (unlikely(ds->waits_since && ds->slept_then == p->nvcsw)) {
		list_add(&ds->waits, &mt_ds_cpu_of(rq)->waiting);
		return;
	}
	mt_ds_count_anew(p, rq_clock(rq));
	list_add_tail(&ds->waits, &mt_ds_cpu_of(rq)->waiting);
}

/* ds_kthreads.c */
int mt_ds_assign(struct mt_group *group, pid_t tid);
void mt_ds_dismiss(struct mt_group *group);
void mt_ds_refresh_assigned(const struct mt_group *group);
void mt_ds_exit(struct task_struct *p);
void mt_ds_show_assigned(struct seq_file *file, const struct mt_group *group);

/* ds_group.c */
struct mt_group *mt_ds_group_of(struct task_struct *p);
void mt_ds_attach(struct cgroup_taskset *tset);
void mt_group_put(struct mt_group *group);

#endif /* _KERNEL_SCHED_MACROTICK_DS_H */
