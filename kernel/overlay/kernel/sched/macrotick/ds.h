/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: SCHED_DS, groups served by deferrable servers.
 *
 * ds_order.c	selects the next server of a CPU, and its next thread.
 * ds_server.c	charges, closes and refills servers.
 * ds_period.c	the server period.
 * ds_class.c	the scheduling class of threads that only servers serve.
 * ds_group.c	the files of the cpu controller, admission.
 * ds_kthreads.c kernel threads in a group.
 * ds_lead.c	wakes threads of a group up early, and holds them.
 * ds_relief.c	threads that their group keeps inside the kernel.
 *
 * A control group with a budget is a group here, and has a server on each CPU.
 * All budgets are refilled at the same instants: the multiples of one period on
 * CLOCK_MONOTONIC, plus a phase. A server is open while it has budget left. Among
 * the open servers, the one of the group with the highest priority runs its first
 * thread.
 *
 * Servers serve a thread through claims (claim.c). One is a claim on the servers
 * of its group. The other is lent by a waiter for a lock of the thread. A claim is
 * in the queue of its CPU's server while the thread is on the run queue, whatever
 * class the thread has. If a server closes, opens or gets another budget, its
 * claims stay where they are, and no thread changes.
 *
 * Lock order: mt_ds_mutex > p->pi_lock > rq lock. The lock of its CPU's run queue
 * protects a server. The lock of the thread's run queue protects claims.
 */
#ifndef _KERNEL_SCHED_MACROTICK_DS_H
#define _KERNEL_SCHED_MACROTICK_DS_H

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/macrotick_linux.h>
#include <linux/mmu_context.h>
#include <linux/refcount.h>

#include "../sched.h"
#include "../../locking/rtmutex_common.h"

/* Priorities of groups, 1 to 99: the greater one comes first. */
#define MT_GROUP_PRIOS		100
#define MT_GROUP_MAX_PRIO	(MT_GROUP_PRIOS - 1)

struct mt_server {
	unsigned int		priority;	/* of its group */
	u64			budget;		/* ns per period; zero: it serves no thread */
	/* the budget is about to end: its threads decide again */
	bool			leaves;
	s64			left;		/* of the period @seen */
	u64			debt;		/* used on credit, and not paid yet */
	u64			seen;		/* number of the period of the last look */
	u64			closed_in;	/* number of the period with an exhausted budget */
	u64			closed;		/* since when, while it has ready threads; or 0 */
	bool			used;		/* the budget, since @seen */
	/* closed, but serves threads that were offered a lock */
	bool			credit;
	unsigned int		nr_ready;
	/* With a budget and ready threads: in a queue of its CPU */
	struct list_head	order;
	struct list_head	offered;	/* its ready threads that are blocked on a lock */
	DECLARE_BITMAP(prios, MAX_RT_PRIO);	/* queues that have claims */
	struct list_head	ready[MAX_RT_PRIO];
	u64			usage;
	u64			throttled;	/* closed with ready threads */
	u64			refills;
	u64			exhaustions;
	u64			reliefs;
};

/* It exists as long as its control group, or a claim on it. */
struct mt_group {
	struct rcu_head		rcu;
	refcount_t		ref;
	unsigned int		priority;	/* 1 to MT_GROUP_MAX_PRIO */
	u32			lead;		/* ns */
	bool			takes_fifo;	/* SCHED_FIFO and SCHED_RR mean SCHED_DS */
	/* CPUs with a budget that is not about to end; under mt_ds_mutex */
	unsigned int		nr_budgets;
	bool			active;		/* there is a budget; likewise */
	struct mt_server	servers[];	/* by CPU */
};

/* The servers of one priority on a CPU that have ready threads. */
struct mt_ds_queue {
	struct list_head	open;		/* or on credit */
	/* in the period closed_in: open in any later period */
	struct list_head	closed;
	u64			closed_in;
};

/* The servers of one CPU. */
struct mt_ds_cpu {
	unsigned int		cpu;
	/* By MT_GROUP_MAX_PRIO - priority; the last is always set */
	DECLARE_BITMAP(open, MT_GROUP_PRIOS + 1);
	DECLARE_BITMAP(ready, MT_GROUP_PRIOS + 1);	/* the same, closed ones included */
	struct mt_ds_queue	queue[MT_GROUP_PRIOS];
	/* Ready threads that do not count as runnable before the refill */
	unsigned int		nr_closed;
	unsigned int		nr_budgets;	/* servers with a budget */
	u64			period;		/* number of the server period, from 1 */
	struct list_head	waiting;	/* ready threads, see ds_relief.c */
	u64			next_look;	/* the next look for starved threads among them */
	/* with a reference: a starved thread that was found */
	struct task_struct	*relieving;
	struct kthread_work	relief;
	struct mt_server	*picked;	/* the server of the thread that is about to run */
	struct task_struct	*picked_task;
	struct mt_server	*charged;	/* the server of the running thread */
	u64			since;		/* the last charge, in rq's task time */
	bool			ended;		/* its budget was exhausted while it ran */
	bool			catching_up;	/* the timer is programmed at the end */
	u64			refill;		/* the next one; U64_MAX: nothing was used */
	u64			limit;		/* the earliest end of a server's budget */
	struct mt_server	*limited;	/* that server: open, runs or will run; or NULL */
	u64			foreseen;	/* when the limit was set, before it runs; or 0 */
	u64			lag;		/* expected delay until it runs */
	/* the next look for starved threads; U64_MAX: none */
	u64			poll;
	u64			armed;		/* expiry of the timer; U64_MAX: none */
	struct hrtimer		timer;
	struct irq_work		work;
	u64			sum;		/* of all budgets; under mt_ds_mutex */
	unsigned int		share;		/* of the CPU, taken by budgets: see admit.c */
};

DECLARE_PER_CPU(struct mt_ds_cpu, mt_ds_cpus);

static inline struct mt_ds_cpu *mt_ds_cpu_of(struct rq *rq)
{
	return per_cpu_ptr(&mt_ds_cpus, cpu_of(rq));
}

/* Whether a server serves its threads. */
static inline bool mt_ds_is_open(const struct mt_ds_cpu *c, const struct mt_server *server)
{
	return server->closed_in != c->period && server->budget;
}

/* Whether a group serves threads on a CPU, and will continue to. */
static inline bool mt_has_budget(const struct mt_group *group, int cpu)
{
	return group && READ_ONCE(group->servers[cpu].budget) &&
		!READ_ONCE(group->servers[cpu].leaves);
}

/* The loan of a thread's waiters, without references. */
struct mt_loan {
	/* A loan on this group raises the thread's own claim, to own_prio */
	struct mt_group		*own;
	int			own_prio;
	struct mt_group		*group;
	int			prio;
	struct macrotick_served	*entity;
};

/* Whether a server of a CPU has a thread to run. */
static inline bool mt_ds_is_ready(const struct mt_ds_cpu *c)
{
	return sched_find_first_bit(c->open) < MT_GROUP_PRIOS;
}

/* ds_period.c: ns */
extern u64 mt_ds_period;
extern unsigned int mt_ds_phase;
void mt_ds_set_period(u64 period);

/* claim.c */
struct mt_group *mt_serving_group(struct task_struct *p, int policy, bool *means_ds);

/* lend.c */
int mt_borrow(struct task_struct *p, int cpu, struct mt_loan *best);

/* ds_order.c */
struct mt_claim *mt_ds_first(struct mt_ds_cpu *c, struct mt_server **server);
void mt_ds_link(struct rq *rq, struct mt_claim *claim, struct mt_server *server, bool head);
void mt_ds_unlink(struct rq *rq, struct mt_claim *claim);
void mt_ds_requeue(struct mt_claim *claim);
void mt_ds_close(struct rq *rq, struct mt_server *server);
void mt_ds_take_out(struct rq *rq, struct mt_server *server);
void mt_ds_put_in(struct rq *rq, struct mt_server *server);
void mt_ds_open_all(struct rq *rq, u64 period);
void mt_ds_note_offered(struct rq *rq, struct task_struct *p);
void mt_ds_forget_offered(struct rq *rq, struct task_struct *p);
void mt_ds_update_credit(struct rq *rq, struct mt_server *server);
void __init mt_ds_order_init(struct mt_ds_cpu *c);

/* ds_server.c */
u64 mt_ds_refill_after(u64 now);
u64 mt_ds_throttled(const struct mt_ds_cpu *c, const struct mt_server *server);
void mt_ds_look(struct mt_ds_cpu *c, struct mt_server *server);
void mt_ds_account(struct rq *rq);
void mt_ds_resched(struct rq *rq);
void mt_ds_offline(struct rq *rq);
void mt_ds_set_budget(struct rq *rq, struct mt_server *server, u64 budget);
void mt_ds_set_priority(struct rq *rq, struct mt_server *server, unsigned int priority);

/* ds_relief.c */
void mt_ds_relieve(struct rq *rq);
void mt_ds_relieve_found(struct mt_ds_cpu *c);
void __init mt_ds_relief_init(struct mt_ds_cpu *c);

/*
 * Whether a look for starved threads is due. Under the lock of the run queue,
 * its clock up to date.
 */
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
 * Notes that a thread is ready, and may not get to run. A thread that was
 * dequeued and queued again goes first in the list. A thread that slept, whatever
 * its class was, starts its wait again.
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
int mt_ds_change_period(u64 period);
struct mt_group *mt_ds_group_of(struct task_struct *p, bool *takes_fifo);
void mt_ds_attach(struct cgroup_taskset *tset);
void mt_group_put(struct mt_group *group);

#endif /* _KERNEL_SCHED_MACROTICK_DS_H */
