/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macrotick: types and functions shared by the files of this directory.
 *
 * admit.c   admission of windows, budgets and deadline tasks.
 * table.c   decodes and builds a table (no locks, may fail).
 * run.c     install, start, stop, remove (process context, may sleep).
 * swap.c    a table replaces the running one.
 * window.c  walks through a CPU's windows: the interrupt path.
 * route.c   entities with windows on several CPUs: which window is next.
 * migrate.c moves their threads to the CPU of the window that opens.
 * class.c   the scheduling class: which thread runs next.
 * member.c  threads join, fork, exit.
 * wait.c    threads wait for their next job.
 * place.c   class and priority of a thread outside its windows.
 * claim.c   the windows and servers that serve a thread, own and lent ones.
 * lend.c    the loans of threads that wait for locks.
 * lead.c    dispatches jobs early and holds them until their nominal instant.
 * sync.c    tables that follow CLOCK_TAI.
 * pool.c    threads that do not know jobs, and their control groups.
 * miss.c    jobs that are not complete in time.
 * hotplug.c CPUs that go offline and come back.
 * recorder.c the latest events of each CPU.
 * device.c  /dev/macrotick.
 *
 * Lock order: mt_control (rt_mutex) > p->pi_lock > rq lock > mt_table_lock > an
 * entity's own (struct mt_roaming). The lock of a CPU's run queue protects the
 * CPU's entities and its position in the table. A bound thread never leaves the
 * CPU of its entity (macrotick_pins()). Its own run queue's lock is therefore the
 * same one.
 *
 * An entity with windows on several CPUs is on one CPU at a time. That changes
 * under the locks of both run queues (migrate.c). A thread of it may be on another
 * CPU for a while. The entity's own lock (mt_lock_entity()) therefore protects the
 * thread's membership and job in addition. The entity's lists of ready threads
 * have only threads on its CPU.
 */
#ifndef _KERNEL_SCHED_MACROTICK_INTERNAL_H
#define _KERNEL_SCHED_MACROTICK_INTERNAL_H

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/macrotick_linux.h>
#include <linux/mmu_context.h>
#include <linux/rtmutex.h>
#include <linux/wait.h>

#include "../sched.h"
#include "../../locking/rtmutex_common.h"

struct macrotick_table;
struct mt_route;

/* The additional state of an entity with windows on several CPUs. */
struct mt_roaming {
	raw_spinlock_t		lock;		/* inside the run queues' */
	cpumask_var_t		cpus;		/* all CPUs of its windows */
	const struct mt_route	*route;		/* in the table that is dispatched */
	const struct mt_route	*next_route;	/* in mt_staged */
	u64			cycle;		/* with stop: the route's next window to begin */
	unsigned int		stop;
	u64			since;		/* the instant of its last restart */
};

/* An entity: an ordered set of threads. It can outlive the table that made it. */
struct macrotick_served {
	/* One per table, per bound thread and per thread that it lends to */
	struct kref		ref;
	struct rcu_head		rcu;
	int			cpu;		/* of a roaming one: its current CPU */
	struct mt_roaming	*roaming;	/* NULL: all windows are on one CPU */
	bool			removed;	/* no table has it any longer */
	struct list_head	threads;	/* bound; in order of joining, except in a pool */
	struct list_head	ready;		/* in the order in which they are served */
	struct rb_root_cached	turns;		/* of pools not FIFO: the same, to insert by */
	/* threads that are blocked on a lock, and frozen outside */
	struct list_head	contenders;
	struct list_head	credits;	/* in its CPU's creditors */
	/* Owners of locks that its threads wait for, on its CPU */
	struct list_head	lent;
	unsigned int		nr_lent;
	unsigned int		nr_threads;
	unsigned int		nr_ready;
	unsigned int		nr_jobs;	/* threads with an incomplete job */
	char			name[MACROTICK_NAME_LEN];
	bool			pool;
	bool			by_priority;
	bool			slack;
	s64			credit;		/* of a pool: see mt_update_credit() */
	u64			slice;		/* of threads that take turns; zero: FIFO */
	u64			vtime;		/* virtual time of the current turn */
	u32			misses_in_row;
	bool			stopped;	/* its threads are outside the class, or will be */
	bool			expels;		/* its threads must leave the class */
	bool			leaves;		/* mt_staged does not have it */
	struct list_head	node;		/* in its mt_cpu's entities */
	bool			missed;		/* since the last report */
	bool			kills;		/* the report is SIGKILL */
	struct eventfd_ctx	*notify;	/* under mt_control */
	u64			activations;	/* while it had threads */
	u64			completions;
	u64			misses;
	u64			lost;
	u64			skipped;
	u64			preemptions;
	u64			runtime;
	u64			held;
	u64			late;
	u64			late_max;
	u64			never_ran;
};

/* The windows of a roaming entity on all CPUs, in the order in which they begin. */
struct mt_route {
	unsigned int		nr_stops;
	struct mt_window	**stops;	/* within table->stops */
};

/* An entity in one table. */
struct mt_slot {
	struct macrotick_served	*entity;
	struct mt_slot		*next_name;	/* in its bucket of table->names */
	u32			flags;
	u32			max_misses;
	u32			nr_windows;
	u32			nr_releases;	/* of jobs, in a cycle */
	u64			first_job;	/* see mt_job_at() */
	u32			prior_releases;
	struct mt_route		route;		/* of a roaming entity */
};

struct mt_window {
	u64			offset;
	u64			end;
	struct macrotick_served	*entity;	/* slot->entity */
	struct mt_slot		*slot;
	u32			lead;		/* zero without ACTIVATE */
	/* the number of its entity's jobs before it in a cycle */
	u32			job;
	u32			flags;
	union {
		u32		bound;		/* of a sync window */
		u32		stop;		/* of a roaming entity: its place in the route */
	};
};

/* The windows of one CPU. */
struct mt_schedule {
	unsigned int		nr_windows;
	struct mt_window	*windows;	/* within table->windows */
	/* the time that they and their leads take in a cycle */
	u64			load;
};

/*
 * The position of a running table on its clock. Cycle n begins at epoch + n *
 * cycle + shift on CLOCK_MONOTONIC. On the table's clock, add offset.
 */
struct mt_grid {
	raw_spinlock_t		lock;		/* inside the run queues' */
	bool			fixed;		/* no more corrections: a swap is in progress */
	u64			clock_epoch;	/* of cycle 0, on the table's clock */
	s64			offset;		/* zero with CLOCK_MONOTONIC */
	s64			shift;		/* the sum of all corrections */
	s64			rest;		/* remaining error after the last sync window */
	u64			decided;	/* instant of that window, without shift */
	u64			stretched;
	u64			shrunk;
	u64			corrections;
};

struct macrotick_table {
	struct kref		ref;
	u64			cycle;
	u64			lead;
	/* while running, on CLOCK_MONOTONIC; otherwise zero */
	u64			epoch;
	/* number of cycles of the table that it replaced, until then */
	u64			prior_cycles;
	bool			follows;	/* CLOCK_TAI */
	struct mt_grid		grid;
	unsigned int		nr_entities;
	unsigned int		nr_windows;
	unsigned int		nr_roaming;
	struct mt_slot		*slots;		/* nr_entities, and one for sync windows */
	struct mt_slot		**names;	/* slots by hash of name, 1 << names_bits buckets */
	unsigned int		names_bits;
	struct mt_slot		**roaming;	/* those of roaming entities */
	struct mt_window	**stops;	/* all windows of those */
	struct mt_window	*windows;	/* sorted by CPU and offset */
	struct mt_schedule	schedules[];	/* by CPU */
};

/* The position of a CPU in the table. */
struct mt_cpu {
	struct macrotick_table	*table;		/* NULL: not dispatching */
	struct macrotick_table	*staged;	/* begins at its epoch */
	const struct mt_schedule *schedule;
	u64			base;		/* start of the current cycle */
	u64			cycle;		/* its number */
	s64			shift;		/* the part of it that is the grid's */
	unsigned int		pos;		/* the open window, otherwise the next one */
	bool			open;		/* windows[pos] has begun */
	bool			tell;		/* the thread of miss.c has work */
	bool			fetching;	/* threads of the wanted entity arrive */
	struct macrotick_served	*served;	/* of the open window */
	/* it is on another CPU, and its window here must open */
	struct macrotick_served	*wanted;
	struct task_struct	*picked;	/* is about to run */
	struct macrotick_served	*picked_for;	/* the entity that it was picked for */
	struct task_struct	*running;	/* was picked by the class, and runs */
	struct macrotick_served	*charged;	/* the entity that is charged for it */
	u64			since;		/* the last charge, in rq's task time */
	/* threads in the class with their entity on another CPU */
	struct list_head	astray;
	unsigned int		cpu;
	atomic_t		nr_roaming;	/* roaming entities with threads and windows here */
	u64			roaming_since;	/* when the first thread of such an entity joined */
	unsigned int		nr_threads;	/* bound to entities of this CPU */
	unsigned int		share;		/* of the CPU, taken by windows: see admit.c */
	/* entities with threads; roaming ones on this CPU */
	struct list_head	entities;
	u64			armed;		/* expiry of the timer; U64_MAX: none */
	struct hrtimer		timer;
	struct irq_work		work;
	/* Entities that serve, outside of windows, threads that were offered a lock */
	struct list_head	creditors;
	/* Threads served outside of windows until they may migrate */
	struct list_head	pinned;
	unsigned int		nr_pinned;
	u64			poll;		/* the next look at them */
	u64			poll_ns;	/* the interval of these looks */
};

DECLARE_PER_CPU(struct mt_cpu, mt_cpus);

static inline struct mt_cpu *mt_cpu_of(struct rq *rq)
{
	return per_cpu_ptr(&mt_cpus, cpu_of(rq));
}

/* Makes the CPU run its irq_work. After a suspend, a CPU looks by itself (mt_resume()). */
static inline void mt_kick(struct mt_cpu *c)
{
	if (likely(cpu_online(c->cpu)))
		irq_work_queue_on(&c->work, c->cpu);
}

/* table.c */
struct macrotick_table *mt_table_decode(struct macrotick_install *arg);
void mt_table_put(struct macrotick_table *table);
int mt_refuse(struct macrotick_install *arg, enum macrotick_error error, u32 index, u32 other);

static inline void mt_table_get(struct macrotick_table *table)
{
	kref_get(&table->ref);
}

struct mt_slot *mt_find_slot(const struct macrotick_table *table, const char *name);
void mt_entity_put(struct macrotick_served *entity);

static inline void mt_entity_get(struct macrotick_served *entity)
{
	kref_get(&entity->ref);
}

/* admit.c */
int mt_admit(struct macrotick_install *arg, const struct macrotick_table *table);
bool mt_admit_budgets(unsigned int cpu);
void mt_reserve(const struct macrotick_table *table, const struct macrotick_table *staged);

/* run.c */
/*
 * Threads of pools of any priority take it when they look at their groups.
 * Waiters lend them their priority, on every kernel.
 */
extern struct rt_mutex mt_control;
DEFINE_GUARD(mt_control, struct rt_mutex *, rt_mutex_lock(_T), rt_mutex_unlock(_T))
/*
 * For readers. A thread of the class must not be frozen while it holds
 * mt_control, which has no priority inheritance without PREEMPT_RT. mt_table,
 * mt_staged and the names of control groups change under mt_control and this
 * lock.
 */
extern raw_spinlock_t mt_table_lock;
extern struct macrotick_table *mt_table;
extern bool mt_running;				/* the table, not stopped */
extern struct wait_queue_head mt_start_wait;	/* for mt_running, or no membership */

/* The first cycle begins at least this time later. */
#define MT_START_MARGIN_NS	(100 * NSEC_PER_USEC)

void mt_publish(struct macrotick_table *table, struct macrotick_table *staged);
struct macrotick_table *mt_installed_table(void);
struct macrotick_table *mt_latest_table(void);
int mt_begin_control(void);
void mt_end_control(void);
int mt_install(struct macrotick_install *arg);
int mt_start(struct macrotick_start *arg);
int mt_stop(void);
int mt_remove(void);
void mt_follow(struct macrotick_served *entity);
void mt_release_members(struct macrotick_served *entity);
struct task_struct *mt_find_member(struct macrotick_served *entity,
				   bool (*test)(struct task_struct *p));

u64 mt_wind_forward(u64 epoch, s64 offset, const struct macrotick_table *table);

static inline bool mt_has_windows(const struct macrotick_table *table, unsigned int cpu)
{
	return table && table->schedules[cpu].nr_windows;
}

/* swap.c */
extern struct macrotick_table *mt_staged;

/* Whether the installed table, or the one that will replace it, has windows on a CPU. */
static inline bool mt_is_concerned(unsigned int cpu)
{
	return mt_has_windows(mt_table, cpu) || mt_has_windows(mt_staged, cpu);
}

int mt_swap(struct macrotick_install *arg, struct macrotick_table *table);
bool mt_swapped(void);
bool mt_finish_swap(void);
void mt_settle_swap(void);

/* window.c */
void mt_cpu_init(struct mt_cpu *c, unsigned int cpu);
void mt_resume(struct rq *rq);
void mt_advance(struct rq *rq, u64 now);
void mt_bring_up(struct rq *rq, struct mt_cpu *c, u64 now);
void mt_rearm(struct rq *rq);
void mt_end_service(struct rq *rq);
void mt_activate(struct rq *rq, struct macrotick_served *entity, u64 job, u64 nominal, bool hold);
void mt_resched(struct rq *rq, struct mt_cpu *c);
void mt_dispatch(struct rq *rq, struct macrotick_table *table);
void mt_halt(struct rq *rq);
void mt_stage(struct rq *rq, struct macrotick_table *table);
void mt_begin_swap(struct rq *rq, struct macrotick_table *table);
void mt_link_ready(struct rq *rq, struct task_struct *p);
void mt_unlink_ready(struct rq *rq, struct task_struct *p);

/* sync.c */
int mt_check_sync(struct macrotick_install *arg, u32 index, const struct macrotick_window *in);
int mt_decode_sync(struct macrotick_install *arg, struct macrotick_table *table);
s64 mt_clock_offset(const struct macrotick_table *table);
void mt_init_grid(struct macrotick_table *table, u64 clock_epoch, s64 offset);
u64 mt_fix_grid(struct macrotick_table *table, s64 *offset);
void mt_sync(struct rq *rq, struct mt_cpu *c, const struct mt_window *w, u64 now);
void mt_follow_grid(struct mt_cpu *c);
void mt_describe_grid(struct macrotick_get *arg, struct macrotick_table *table);

/* Returns the slot of the sync windows: an entity that is always stopped. */
static inline struct mt_slot *mt_sync_slot(struct macrotick_table *table)
{
	return &table->slots[table->nr_entities];
}

/* route.c */
int mt_alloc_roaming(struct macrotick_served *entity);
void mt_free_roaming(struct macrotick_served *entity);
int mt_decode_routes(struct macrotick_install *arg, struct macrotick_table *table);
bool mt_follow_route(struct rq *rq, struct mt_cpu *c, const struct mt_window *w);
void mt_begin_routes(struct macrotick_table *table);
void mt_rejoin(struct macrotick_served *entity, u64 now);
void mt_swap_routes(struct rq *rq, struct mt_cpu *c);
bool mt_concerns_anybody(struct macrotick_served *entity, u64 begin);

/*
 * Whether the entity had threads when a window began. A thread that joins later
 * finds the table as it is then.
 */
static inline bool mt_concerns(struct macrotick_served *entity, u64 begin)
{
	return unlikely(entity->roaming) ? mt_concerns_anybody(entity, begin) : entity->nr_threads;
}

/* migrate.c */
void mt_list_roaming(const struct macrotick_table *table);
void mt_unlist_roaming(struct macrotick_served *entity);
void mt_enqueue_astray(struct rq *rq, struct task_struct *p);
void mt_dequeue_astray(struct task_struct *p);
void mt_want_delivery(struct rq *rq);
void mt_deliver(struct rq *rq);
void mt_fetch(struct rq *rq, struct rq *src);
void mt_release_pinned(struct rq *rq, struct macrotick_served *entity);

/* lead.c */
int mt_decode_leads(struct macrotick_install *arg, struct macrotick_table *table);
void mt_note_hold(struct task_struct *p);
void mt_pass_door(void);
void mt_hold_until(u64 instant);

/* pool.c */
int mt_decode_pool(struct macrotick_install *arg, u32 index, const struct macrotick_entity *in,
		   struct macrotick_served *entity);
void mt_pool_enter(struct task_struct *p, int policy, int priority);
void mt_pool_link(struct task_struct *p);
void mt_pool_unlink(struct task_struct *p);
void mt_pool_account(struct task_struct *p, u64 delta);
void mt_pool_turn(struct macrotick_served *entity);
void mt_pool_yield(struct task_struct *p);
void mt_weigh(struct task_struct *p);
void mt_poke(struct task_struct *p);
void mt_poke_groups(void);

/* miss.c */
void mt_check_deadline(struct mt_cpu *c, const struct mt_window *w, u64 end);
void mt_meet(struct task_struct *p);
void mt_stop_entity(struct mt_cpu *c, struct macrotick_served *entity);
void mt_restart(struct macrotick_served *entity);
void mt_queue_work(struct kthread_work *work);
void mt_tell(void);
int mt_notify(struct macrotick_notify *arg);
void mt_put_notify(struct eventfd_ctx *notify);
void mt_forget_notify_all(void);

/* class.c */
struct task_struct *mt_first_outside(const struct mt_cpu *c, struct macrotick_served **entity);
void __mt_update_credit(struct rq *rq, struct macrotick_served *entity);
void mt_note_contender(struct rq *rq, struct task_struct *p);
void mt_forget_contender(struct rq *rq, struct task_struct *p);
void mt_enqueued(struct rq *rq, struct task_struct *p);
void mt_dequeue(struct rq *rq, struct task_struct *p);
void mt_account(struct rq *rq);
void mt_complete_job(struct rq *rq, struct task_struct *p);
void mt_leave(struct task_struct *p);
void mt_end_wait(struct rq *rq, struct task_struct *p);
void mt_add_pinned(struct rq *rq, struct task_struct *p);
void mt_end_pinning(struct rq *rq, struct task_struct *p);
void mt_look_at_pinned(struct rq *rq, struct mt_cpu *c, u64 now);
void mt_link_home(struct rq *rq, struct task_struct *p);

/* claim.c */
void mt_decide(struct rq *rq, struct task_struct *p, int policy, int normal_prio, int *prio);
void mt_redecide(struct task_struct *p);

/* member.c */
int mt_bind(struct task_struct *p, const char *name);
int mt_unbind(struct task_struct *p);
int mt_set_policy(struct task_struct *p);

/* recorder.c */
#ifdef CONFIG_TRACEPOINTS
int mt_start_recorder(struct file *file, struct macrotick_recorder *arg);
int mt_map_recorder(struct file *file, struct vm_area_struct *vma);
void mt_end_recorder(struct file *file);
#else
static inline int mt_start_recorder(struct file *file, struct macrotick_recorder *arg)
{
	return -EOPNOTSUPP;
}

static inline int mt_map_recorder(struct file *file, struct vm_area_struct *vma)
{
	return -ENODEV;
}

static inline void mt_end_recorder(struct file *file) { }
#endif

/* wait.c */
int mt_wait(struct macrotick_wait *arg);

/*
 * Returns the number of the job that a window releases in a cycle. It follows
 * from the window's place alone. The kernel therefore need not count windows
 * while an entity has no threads. Numbers continue over a swap.
 */
static inline u64 mt_job_at(const struct macrotick_table *table, const struct mt_window *w,
			    u64 cycle)
{
	const struct mt_slot *slot = w->slot;

	return slot->first_job + table->prior_cycles * slot->prior_releases +
		cycle * slot->nr_releases + w->job;
}

/*
 * Locks membership and jobs of a roaming entity's threads. For other threads,
 * the run queue's lock protects them.
 */
static inline void mt_lock_entity(struct macrotick_served *entity)
{
	if (unlikely(entity->roaming))
		raw_spin_lock(&entity->roaming->lock);
}

static inline void mt_unlock_entity(struct macrotick_served *entity)
{
	if (unlikely(entity->roaming))
		raw_spin_unlock(&entity->roaming->lock);
}

/* Returns the CPUs on which the entity's threads may be. */
static inline const struct cpumask *mt_cpus_of(const struct macrotick_served *entity)
{
	return entity->roaming ? entity->roaming->cpus : cpumask_of(entity->cpu);
}

/* Whether a roaming entity is on another CPU; exact under this one's run queue's lock. */
static inline bool mt_is_elsewhere(const struct mt_cpu *c, const struct macrotick_served *entity)
{
	return unlikely(entity->roaming) && READ_ONCE(entity->cpu) != c->cpu;
}

/*
 * Returns the instant at which a window opens: earlier by its lead if all jobs
 * of its entity are complete. An entity on another CPU is fetched that early in
 * any case.
 */
static inline u64 mt_opening(const struct mt_cpu *c, const struct mt_window *w, u64 base)
{
	if (unlikely(w->lead) &&
	    ((!w->entity->nr_ready && !w->entity->nr_jobs) || mt_is_elsewhere(c, w->entity)))
		return base + w->offset - w->lead;
	return base + w->offset;
}

/* Records the lateness of an activation that is handled at @now. */
static inline void mt_note_release(struct macrotick_served *entity, u64 nominal, u64 now)
{
	s64 late = now - nominal;

	if (late > (s64)entity->late_max && entity->nr_threads)
		entity->late_max = late;
}

/**
 * mt_first - returns the thread that the class wants a CPU to run
 * @c: the CPU's position, under its run queue's lock
 * @entity: set to the entity that is charged
 *
 * Return: the thread, or NULL.
 */
static inline struct task_struct *mt_first(const struct mt_cpu *c,
					   struct macrotick_served **entity)
{
	struct macrotick_served *served = c->served;

	if (served && !list_empty(&served->ready)) {
		*entity = served;
		return list_first_entry(&served->ready, struct task_struct, macrotick.ready);
	}
	if (served && unlikely(!list_empty(&served->lent))) {
		*entity = served;
		return list_first_entry(&served->lent, struct task_struct, macrotick.lends);
	}
	if (likely(list_empty(&c->pinned) && list_empty(&c->creditors)))
		return NULL;
	return mt_first_outside(c, entity);
}

/**
 * mt_update_credit - updates the service for offered locks after a window or the credit changed
 * @rq: the run queue of the entity, locked
 * @entity: the entity
 */
static inline void mt_update_credit(struct rq *rq, struct macrotick_served *entity)
{
	if (unlikely(!list_empty(&entity->contenders)))
		__mt_update_credit(rq, entity);
}

/* Whether the entity's threads should be in the class. */
static inline bool mt_is_active(const struct macrotick_served *entity)
{
	return READ_ONCE(mt_running) && !READ_ONCE(entity->stopped);
}

/* Whether a bound thread with the policy SCHED_TT should be in the class. */
static inline bool mt_may_enter(const struct task_struct *p)
{
	return mt_is_active(p->macrotick.entity) && !p->macrotick.controls;
}

/*
 * Returns the normal priority of a thread with the policy SCHED_TT, as a member
 * of the class or outside it.
 */
static inline int mt_normal_prio(struct task_struct *p, bool member)
{
	if (member)
		return MACROTICK_PRIO;
	return p->macrotick.pooled ? mt_own_prio(p) : p->static_prio;
}

/* Whether the thread is a member of the class, boosted or not. */
static inline bool mt_is_member(struct task_struct *p)
{
	return macrotick_class(p->policy, p->normal_prio);
}

/* Whether a window of the entity is open, on any CPU; for a roaming entity only a hint. */
static inline bool mt_is_open(const struct macrotick_served *entity)
{
	return READ_ONCE(per_cpu(mt_cpus, READ_ONCE(entity->cpu)).served) == entity;
}

/* Whether a window of the thread's entity is open on its run queue. */
static inline bool mt_is_served(struct rq *rq, struct task_struct *p)
{
	return mt_cpu_of(rq)->served == p->macrotick.entity;
}

#endif /* _KERNEL_SCHED_MACROTICK_INTERNAL_H */
