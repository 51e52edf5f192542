// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: threads move with the windows of their entity.
 *
 * Fetching: when a window opens on a CPU, the interrupt of that CPU takes the
 * entity over, under the locks of both run queues. Any window that the other CPU
 * has open for the entity ends. The entity's threads on the other run queue move.
 *
 * Delivering: some threads cannot move then. A running thread is stopped. A thread
 * that must not migrate is served on its CPU, outside its windows, until it may.
 * On PREEMPT_RT that is every thread in a critical section of a spinlock. Both
 * are astray: in the class, on another CPU than their entity, and not among its
 * ready threads. A thread that wakes up, or enters the class, on another CPU is
 * astray as well. An interrupt on the thread's CPU sends it after its entity as
 * soon as it can move.
 *
 *            left behind, woken elsewhere            delivered, or fetched
 *   HOME  ------------------------------->  ASTRAY  ----------------------> HOME
 *  (queued)                                (astray)                       (queued)
 *
 * A sleeping thread is neither: select_task_rq() finds its entity.
 */
#include "internal.h"

/*
 * Puts the table's roaming entities on the lists of their CPUs, with or without
 * threads. Under mt_control. Those of an older table are on the lists already.
 */
void mt_list_roaming(const struct macrotick_table *table)
{
	unsigned int i;

	for (i = 0; table && i < table->nr_roaming; i++) {
		struct macrotick_served *entity = table->roaming[i]->entity;
		struct rq *rq = cpu_rq(entity->cpu);

		if (!list_empty(&entity->node))
			continue;
		guard(irqsave)();
		raw_spin_rq_lock(rq);
		list_add_tail(&entity->node, &mt_cpu_of(rq)->entities);
		raw_spin_rq_unlock(rq);
	}
}

/* Removes an entity from its list. No CPU dispatches it any longer: it stays on its CPU. */
void mt_unlist_roaming(struct macrotick_served *entity)
{
	struct rq *rq = cpu_rq(entity->cpu);

	guard(irqsave)();
	raw_spin_rq_lock(rq);
	list_del_init(&entity->node);
	raw_spin_rq_unlock(rq);
}

static bool can_move(struct rq *rq, struct task_struct *p, struct rq *dst)
{
	return !task_on_cpu(rq, p) && !is_migration_disabled(p) && cpu_online(cpu_of(dst)) &&
		cpumask_test_cpu(cpu_of(dst), p->cpus_ptr);
}

/* Moves a thread. Both run queues are locked. */
static void move(struct rq *rq, struct task_struct *p, struct rq *dst)
{
	deactivate_task(rq, p, 0);
	set_task_cpu(p, cpu_of(dst));
	activate_task(dst, p, 0);
}

/* Makes the CPU look for threads that can follow their entities. */
void mt_want_delivery(struct rq *rq)
{
	mt_kick(mt_cpu_of(rq));
}

static void note_astray(struct mt_cpu *c, struct task_struct *p)
{
	p->macrotick.astray = true;
	list_add_tail(&p->macrotick.contends, &c->astray);
}

/*
 * Queues a thread that enters the class, or wakes up, on another CPU than its
 * entity's. A running thread is about to be stopped, and may be allowed to
 * migrate by then.
 */
void mt_enqueue_astray(struct rq *rq, struct task_struct *p)
{
	note_astray(mt_cpu_of(rq), p);
	if (is_migration_disabled(p) && !task_on_cpu(rq, p))
		mt_add_pinned(rq, p);
	else
		mt_want_delivery(rq);
}

void mt_dequeue_astray(struct task_struct *p)
{
	p->macrotick.astray = false;
	list_del(&p->macrotick.contends);
}

/* Leaves a thread behind: its entity moves, and the thread cannot move. */
static void leave_behind(struct rq *rq, struct task_struct *p)
{
	struct macrotick_task *m = &p->macrotick;

	if (m->contending)
		mt_forget_contender(rq, p);
	if (m->linked)
		mt_unlink_ready(rq, p);
	m->queued = false;
	note_astray(mt_cpu_of(rq), p);
	if (is_migration_disabled(p) && !m->pinned)
		mt_add_pinned(rq, p);
}

/* Moves the threads on the run queue that the entity leaves. */
static void take_along(struct rq *rq, struct rq *src, struct macrotick_served *entity)
{
	struct task_struct *p;

	mt_lock_entity(entity);
	list_for_each_entry(p, &entity->threads, macrotick.member) {
		if (!p->macrotick.queued || task_rq(p) != src)
			continue;
		if (can_move(src, p, rq))
			move(src, p, rq);
		else
			leave_behind(src, p);
	}
	mt_unlock_entity(entity);
}

/* Takes in the threads that were on this run queue before their entity. */
static void take_home(struct rq *rq, struct mt_cpu *c, struct macrotick_served *entity)
{
	struct task_struct *p, *next;

	list_for_each_entry_safe(p, next, &c->astray, macrotick.contends) {
		if (p->macrotick.entity != entity)
			continue;
		mt_dequeue_astray(p);
		p->macrotick.queued = true;
		if (p->macrotick.pinned)
			continue;
		mt_link_home(rq, p);
		if (p->pi_blocked_on)
			mt_note_contender(rq, p);
	}
}

/*
 * Fetches the wanted entity. Under both run queues' locks. Brings both CPUs to
 * the same instant: the locks may have taken a while, and the window may have
 * passed.
 */
static void fetch(struct rq *rq, struct rq *src, struct mt_cpu *c)
{
	struct macrotick_served *entity;
	u64 now = ktime_get();

	mt_bring_up(rq, c, now);
	entity = c->wanted;
	if (!entity || entity->cpu != cpu_of(src))
		return;
	mt_advance(src, now);
	if (WARN_ON_ONCE(mt_cpu_of(src)->served == entity))
		mt_end_service(src);
	c->fetching = true;
	WRITE_ONCE(entity->cpu, cpu_of(rq));
	list_move_tail(&entity->node, &c->entities);
	take_along(rq, src, entity);
	take_home(rq, c, entity);
	c->fetching = false;
	c->wanted = NULL;
	mt_resched(src, mt_cpu_of(src));
	mt_rearm(src);
}

/**
 * mt_fetch - takes over an entity with a window that is about to open on this CPU
 * @rq: this CPU's run queue, not locked; locked when the call returns
 * @src: the run queue where the entity was a moment ago
 */
void mt_fetch(struct rq *rq, struct rq *src)
{
	struct mt_cpu *c = mt_cpu_of(rq);

	double_rq_lock(rq, src);
	if (likely(src != rq))
		fetch(rq, src, c);
	if (__rq_lockp(rq) != __rq_lockp(src))
		raw_spin_rq_unlock(src);
}

/*
 * Returns the run queue to which the first movable thread must go, or NULL. A
 * thread that was stopped inside a critical section is served until it has left
 * it.
 */
static struct rq *find_destination(struct rq *rq, struct mt_cpu *c)
{
	struct task_struct *p;

	list_for_each_entry(p, &c->astray, macrotick.contends) {
		struct rq *dst = cpu_rq(READ_ONCE(p->macrotick.entity->cpu));

		if (can_move(rq, p, dst))
			return dst;
		if (is_migration_disabled(p) && !task_on_cpu(rq, p) && !p->macrotick.pinned)
			mt_add_pinned(rq, p);
	}
	return NULL;
}

static void deliver_to(struct rq *rq, struct mt_cpu *c, struct rq *dst)
{
	struct task_struct *p, *next;

	list_for_each_entry_safe(p, next, &c->astray, macrotick.contends) {
		if (p->macrotick.entity->cpu == cpu_of(dst) && can_move(rq, p, dst))
			move(rq, p, dst);
	}
	mt_resched(rq, c);
}

/* The number of deliveries in one interrupt; entities may move on while their threads follow */
#define MT_DELIVERIES	4

/**
 * mt_deliver - sends threads that are astray after their entities
 * @rq: this CPU's run queue, not locked; interrupts are off
 */
void mt_deliver(struct rq *rq)
{
	struct mt_cpu *c = mt_cpu_of(rq);
	unsigned int n;

	for (n = 0; n < MT_DELIVERIES; n++) {
		struct rq *dst;

		raw_spin_rq_lock(rq);
		dst = find_destination(rq, c);
		raw_spin_rq_unlock(rq);
		if (!dst)
			return;
		double_rq_lock(rq, dst);
		deliver_to(rq, c, dst);
		double_rq_unlock(rq, dst);
	}
	mt_want_delivery(rq);
}

/*
 * Serves threads that must not migrate at the end of a window. They cannot be
 * frozen, because the next window may be on another CPU, and they cannot move.
 */
void mt_release_pinned(struct rq *rq, struct macrotick_served *entity)
{
	struct task_struct *p, *next;

	list_for_each_entry_safe(p, next, &entity->ready, macrotick.ready) {
		if (is_migration_disabled(p))
			mt_add_pinned(rq, p);
	}
}
