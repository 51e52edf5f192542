// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: deferrable servers.
 *
 * One pinned hard hrtimer per CPU stands at the next refill of something that
 * was used, or at the instant at which the server that runs, or is going to,
 * has used its budget, whichever is first. It may expire early, where what it
 * stood for is over: then it looks, and is programmed anew.
 *
 * A refill first charges what runs for the time until then, and lets whatever
 * was used in excess go: it never charges the old period to the new budget.
 *
 * Who is offered a lock takes it when it runs, and keeps all others from it
 * until then. So a thread whose server is closed is served on credit until it
 * has taken its lock. It does so at the priority of its group, or that of the
 * most important one that waits for the same lock; and the server pays, as far
 * as it can, out of the next budget. Else the threads of a group could have
 * time, and keep it from others, by handing a lock to each other.
 */
#include "ds.h"

DEFINE_PER_CPU(struct mt_ds_cpu, mt_ds_cpus);
u64 mt_ds_period = 2500 * NSEC_PER_USEC;
unsigned int mt_ds_phase;

/*
 * How long who was offered a lock goes on before it is looked at, and how much
 * less often then, and while it does not run.
 */
#define MT_DS_POLL_NS		(50 * NSEC_PER_USEC)
#define MT_DS_POLL_MAX_NS	NSEC_PER_MSEC
/*
 * So many of a server's threads are served on credit at a time; so many if more
 * important ones wait for their locks, who may be of the same container where
 * that has a pool, too; and so many contenders are looked at. What threads do
 * with locks must not make interrupts long.
 */
#define MT_DS_URGENT_MAX	2
#define MT_DS_AWAITED_MAX	16
#define MT_DS_LOOK_MAX		8
/* The limit of a server is no nearer: the interrupt must let it run before it comes again. */
#define MT_DS_MIN_NS		(10 * NSEC_PER_USEC)

static unsigned int order_of(const struct mt_server *server)
{
	return MT_GROUP_MAX_PRIO - server->priority;
}

static void link_server(struct mt_ds_cpu *c, struct mt_server *server)
{
	unsigned int i = order_of(server);

	list_add_tail(&server->order, &c->order[i]);
	__set_bit(i, c->prios);
}

static void unlink_server(struct mt_ds_cpu *c, struct mt_server *server)
{
	unsigned int i = order_of(server);

	list_del_init(&server->order);
	if (list_empty(&c->order[i]))
		__clear_bit(i, c->prios);
}

/* The first thread of a server with ready ones. */
static struct task_struct *first_of(const struct mt_server *server)
{
	unsigned int prio = sched_find_first_bit(server->prios);

	return list_first_entry(&server->ready[prio], struct task_struct, macrotick.ds.ready);
}

/**
 * mt_ds_first - what the class wants a CPU to run
 * @c: the CPU's servers, under its run queue's lock
 *
 * Returns: the thread, or NULL.
 */
struct task_struct *mt_ds_first(const struct mt_ds_cpu *c)
{
	struct task_struct *urgent;
	unsigned int i = sched_find_first_bit(c->prios);

	if (unlikely(!list_empty(&c->urgent))) {
		urgent = list_first_entry(&c->urgent, struct task_struct, macrotick.ds.ready);
		if (i == MT_GROUP_PRIOS || urgent->macrotick.ds.rank >= MT_GROUP_MAX_PRIO - i)
			return urgent;
	}
	if (i == MT_GROUP_PRIOS)
		return NULL;
	return first_of(list_first_entry(&c->order[i], struct mt_server, order));
}

static u64 next_event(const struct mt_ds_cpu *c)
{
	return min3(c->refill, c->poll, READ_ONCE(c->limited) ? c->limit : U64_MAX);
}

/* Only earlier: else it expires in vain. On its own CPU. */
static void program_timer(struct mt_ds_cpu *c)
{
	u64 next = next_event(c);

	if (next >= c->armed)
		return;
	c->armed = next;
	hrtimer_start(&c->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_PINNED_HARD);
}

static void rearm(struct mt_ds_cpu *c)
{
	if (c->catching_up)
		return;
	if (c->cpu == smp_processor_id())
		program_timer(c);
	else if (next_event(c) < c->armed && cpu_online(c->cpu))
		irq_work_queue_on(&c->work, c->cpu);
}

/* Whether the class has somebody to take the place of what runs. */
static bool takes_over(struct rq *rq, const struct task_struct *first)
{
	return first && first != rq->curr && !sched_class_above(rq->curr->sched_class, &macrotick_ds_sched_class);
}

static void resched_for(struct rq *rq, struct task_struct *first)
{
	if (first ? !takes_over(rq, first) : rq->curr->sched_class != &macrotick_ds_sched_class)
		return;
	/* The sleeps of others that end at a refill wait for whom it lets run. */
	if (first)
		timershield_expect(first);
	resched_curr(rq);
}

static void resched(struct rq *rq, struct mt_ds_cpu *c)
{
	resched_for(rq, mt_ds_first(c));
}

/* A part of each refill, whose length counts, and nearly always nothing. */
static __always_inline void want_settle(struct mt_ds_cpu *c)
{
	if (unlikely(mt_ds_watches(c)) && cpu_online(c->cpu))
		irq_work_queue_on(&c->work, c->cpu);
}

static void forget_contender(struct task_struct *p)
{
	struct mt_server *server = p->macrotick.ds.server;

	p->macrotick.ds.contending = false;
	list_del(&p->macrotick.ds.contends);
	if (list_empty(&server->contenders))
		list_del_init(&server->crowd);
}

/*
 * Who takes a lock that others go on waiting for owns it without a change of
 * its priority, and was not decided. Without p->pi_lock it is a hint.
 */
static bool owns_unnoticed(struct task_struct *p)
{
	return unlikely(task_has_pi_waiters(p)) && !p->macrotick.ds.is_watched;
}

/* A waiter's place among the groups: those of windows are before all, those of other classes behind. */
static unsigned int rank_of_waiter(struct task_struct *p)
{
	struct mt_group *group = READ_ONCE(p->macrotick.ds.group);

	if (group)
		return READ_ONCE(group->priority);
	return sched_class_above(p->sched_class, &macrotick_ds_sched_class) ? MT_GROUP_MAX_PRIO : 0;
}

/* So many waiters are looked at, the first ones. */
#define MT_DS_WAITERS_MAX	8

/*
 * The most important one that waits for a lock that a server's thread was
 * offered. The lock's own lock comes before the run queue's: if it is taken, the
 * next look will do.
 */
static unsigned int rank_of(const struct mt_server *server, struct rt_mutex_base *lock)
{
	unsigned int n = 0, rank = server->priority;
	struct rb_node *node;

	if (!raw_spin_trylock(&lock->wait_lock))
		return rank;
	for (node = rb_first_cached(&lock->waiters); node && n < MT_DS_WAITERS_MAX; node = rb_next(node), n++)
		rank = max(rank, rank_of_waiter(rb_entry(node, struct rt_mutex_waiter, tree.entry)->task));
	raw_spin_unlock(&lock->wait_lock);
	return rank;
}

/*
 * The lock that a ready thread is blocked on, if that can be told: it stays
 * while the thread does not run.
 */
static struct rt_mutex_base *lock_of(struct rq *rq, struct task_struct *p)
{
	struct rt_mutex_waiter *waiter = READ_ONCE(p->pi_blocked_on);

	if (!waiter || (task_current(rq, p) && cpu_of(rq) != smp_processor_id()))
		return NULL;
	return waiter->lock;
}

/* Somebody more important than its group waits for the lock that it was offered. */
static bool is_awaited_above(struct rq *rq, struct task_struct *p)
{
	const struct mt_server *server = p->macrotick.ds.server;
	struct rt_mutex_base *lock = lock_of(rq, p);

	return lock && !rt_mutex_owner(lock) && rank_of(server, lock) > server->priority;
}

/* Ready threads that are blocked on a lock: whether one is changes while it runs. */
static void note_contender(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	bool contends = p->pi_blocked_on;

	if (ds->contending == contends)
		return;
	if (!contends) {
		forget_contender(p);
	} else if (ds->linked) {
		ds->contending = true;
		/* Few of them are looked at when the budget ends. */
		if (is_awaited_above(rq, p))
			list_add(&ds->contends, &ds->server->contenders);
		else
			list_add_tail(&ds->contends, &ds->server->contenders);
	}
}

static void add_ready(struct rq *rq, struct task_struct *p, bool head)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	struct mt_server *server = ds->server;

	ds->linked = true;
	ds->prio = clamp(p->prio, 0, MAX_RT_PRIO - 1);
	if (head)
		list_add(&ds->ready, &server->ready[ds->prio]);
	else
		list_add_tail(&ds->ready, &server->ready[ds->prio]);
	__set_bit(ds->prio, server->prios);
	if (unlikely(p->pi_blocked_on))
		note_contender(rq, p);
	if (!server->nr_ready++) {
		if (server->open)
			link_server(mt_ds_cpu_of(rq), server);
		else
			server->closed = ktime_get();
	}
	/* It owns a lock: perhaps who waits for it has it served. Or it is a stray. */
	if (unlikely(ds->is_watched && !server->open))
		want_settle(mt_ds_cpu_of(rq));
	if (server->open)
		add_nr_running(rq, 1);
}

static void end_throttling(struct mt_server *server, u64 now)
{
	server->throttled += now - server->closed;
}

static void remove_ready(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;
	struct mt_server *server = ds->server;

	ds->linked = false;
	list_del(&ds->ready);
	if (list_empty(&server->ready[ds->prio]))
		__clear_bit(ds->prio, server->prios);
	if (unlikely(ds->contending))
		forget_contender(p);
	if (!--server->nr_ready) {
		if (server->open)
			unlink_server(mt_ds_cpu_of(rq), server);
		else
			end_throttling(server, ktime_get());
	}
	if (server->open)
		sub_nr_running(rq, 1);
}

/* Behind those of its rank. */
static void add_urgent(struct mt_ds_cpu *c, struct task_struct *p)
{
	struct list_head *place;

	list_for_each(place, &c->urgent) {
		if (list_entry(place, struct task_struct, macrotick.ds.ready)->macrotick.ds.rank < p->macrotick.ds.rank)
			break;
	}
	list_add_tail(&p->macrotick.ds.ready, place);
}

static void set_aside(struct rq *rq, struct task_struct *p, unsigned int rank)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	ds->urgent = rank;
	ds->rank = rank;
	ds->server->nr_urgent++;
	add_urgent(mt_ds_cpu_of(rq), p);
	add_nr_running(rq, 1);
}

static void take_back(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	list_del(&ds->ready);
	ds->server->nr_urgent--;
	sub_nr_running(rq, 1);
	ds->urgent = false;
}

/*
 * It has its lock. Those who wait for that have boosted nobody while it was only
 * offered, and taking it decides nothing anew. Whether there are any is a hint.
 */
static void add_without_credit(struct rq *rq, struct task_struct *p)
{
	if (task_has_pi_waiters(p))
		mt_ds_watch_here(mt_ds_cpu_of(rq), p, true);
	add_ready(rq, p, false);
}

/* It gives no more credit than it can pay out of a budget. */
static bool gives_credit(const struct mt_server *server)
{
	return server->nr_urgent < MT_DS_URGENT_MAX && (server->debt < server->budget || !server->budget);
}

/*
 * The rank of one that is to be served on credit; zero: it is not. Who was
 * offered a lock is, as far as there is credit, or if somebody more important
 * waits for it. It must not use that time to spin for a lock that somebody owns.
 */
static unsigned int rank_on_credit(struct rq *rq, struct task_struct *p)
{
	const struct mt_server *server = p->macrotick.ds.server;
	struct rt_mutex_base *lock = lock_of(rq, p);
	unsigned int rank;

	/* Whoever is on a CPU that goes off line has to leave it. */
	if (unlikely(!cpu_active(cpu_of(rq))))
		return server->priority;
	if (!lock)
		return gives_credit(server) ? server->priority : 0;
	if (server->nr_urgent >= MT_DS_AWAITED_MAX || rt_mutex_owner(lock))
		return 0;
	rank = rank_of(server, lock);
	return rank > server->priority || gives_credit(server) ? rank : 0;
}

/* A closed server has contenders that are not served. */
static void note_crowd(struct rq *rq, struct mt_server *server)
{
	if (list_empty(&server->crowd))
		list_add_tail(&server->crowd, &mt_ds_cpu_of(rq)->crowded);
}

/* Of a closed server, and in none of its lists. */
static void place_contender(struct rq *rq, struct task_struct *p)
{
	unsigned int rank;

	if (!p->pi_blocked_on) {
		add_without_credit(rq, p);
		return;
	}
	rank = rank_on_credit(rq, p);
	if (rank) {
		set_aside(rq, p, rank);
		return;
	}
	add_ready(rq, p, false);
	note_crowd(rq, p->macrotick.ds.server);
}

/* What runs on credit here has taken its lock: its time is over. */
static void end_credit(struct rq *rq)
{
	struct task_struct *curr = rq->curr;

	if (!curr->macrotick.ds.urgent || curr->pi_blocked_on || cpu_of(rq) != smp_processor_id())
		return;
	take_back(rq, curr);
	add_without_credit(rq, curr);
	resched_curr(rq);
}

/* Contenders of closed servers are looked at after so long at the latest: sooner while one of them runs. */
static void poll_within(struct mt_ds_cpu *c, u64 ns)
{
	u64 now;

	if (likely(!mt_ds_has_contenders(c)))
		return;
	now = ktime_get();
	c->poll_ns = ns;
	/* One that is due soon is not put off: this may come more often. */
	c->poll = min(c->poll, now + ns);
}

static void poll_contenders(struct rq *rq, struct mt_ds_cpu *c)
{
	poll_within(c, rq->curr->macrotick.ds.urgent ? MT_DS_POLL_NS : MT_DS_POLL_MAX_NS);
}

static void look_at_urgent(struct rq *rq, struct mt_ds_cpu *c)
{
	struct task_struct *p, *next;
	LIST_HEAD(all);

	list_splice_init(&c->urgent, &all);
	list_for_each_entry_safe(p, next, &all, macrotick.ds.ready) {
		take_back(rq, p);
		place_contender(rq, p);
	}
}

/*
 * Whether a thread, of any CPU, is a contender of a closed server of this one.
 * If it is in one of this CPU's servers it is under the lock that is held.
 */
static bool is_crowded_here(struct rq *rq, struct task_struct *p)
{
	struct mt_group *group = READ_ONCE(p->macrotick.ds.group);
	struct mt_server *server = READ_ONCE(p->macrotick.ds.server);

	return group && server == &group->servers[cpu_of(rq)] && p->macrotick.ds.contending && !server->open;
}

/* One of a CPU's contenders that waits for a lock, and so was offered it, if it is among the lock's first waiters. */
static struct task_struct *offered(struct rq *rq, struct rt_mutex_base *lock)
{
	struct task_struct *p, *found = NULL;
	struct rb_node *node;
	unsigned int n = 0;

	if (!raw_spin_trylock(&lock->wait_lock))
		return NULL;
	for (node = rb_first_cached(&lock->waiters); node && n < MT_DS_WAITERS_MAX; node = rb_next(node), n++) {
		p = rb_entry(node, struct rt_mutex_waiter, tree.entry)->task;
		if (is_crowded_here(rq, p)) {
			found = p;
			break;
		}
	}
	raw_spin_unlock(&lock->wait_lock);
	return found;
}

/* Who was offered this lock, and is not served, may have to be for the sake of who waits now. */
static void place_offered(struct rq *rq, struct mt_ds_cpu *c, struct rt_mutex_base *lock)
{
	struct task_struct *p = offered(rq, lock);
	unsigned int rank = p ? rank_on_credit(rq, p) : 0;

	if (!rank)
		return;
	mt_ds_account(rq);
	remove_ready(rq, p);
	set_aside(rq, p, rank);
	poll_contenders(rq, c);
	rearm(c);
}

/**
 * mt_ds_rank_again - somebody may wait for a lock that another thread was offered
 * @rq: this CPU's run queue, locked
 */
void mt_ds_rank_again(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct rt_mutex_base *lock = lock_of(rq, rq->curr);
	struct task_struct *p;

	if (!lock)
		return;
	list_for_each_entry(p, &c->urgent, macrotick.ds.ready) {
		if (lock_of(rq, p) != lock)
			continue;
		mt_ds_account(rq);
		look_at_urgent(rq, c);
		return;
	}
	if (!list_empty(&c->crowded))
		place_offered(rq, c, lock);
}

/* Some of those of a closed server. The others are the first ones the next time. */
static void place_contenders(struct rq *rq, struct mt_server *server)
{
	unsigned int n = 0, rank, most = likely(cpu_active(cpu_of(rq))) ? MT_DS_LOOK_MAX : UINT_MAX;
	struct task_struct *p, *next, *passed = NULL;

	list_for_each_entry_safe(p, next, &server->contenders, macrotick.ds.contends) {
		if (p == passed || n++ == most)
			break;
		rank = p->pi_blocked_on ? rank_on_credit(rq, p) : 0;
		if (p->pi_blocked_on && !rank) {
			list_move_tail(&p->macrotick.ds.contends, &server->contenders);
			passed = passed ?: p;
			continue;
		}
		remove_ready(rq, p);
		if (rank)
			set_aside(rq, p, rank);
		else
			add_without_credit(rq, p);
	}
	if (!list_empty(&server->contenders))
		note_crowd(rq, server);
}

static void look_at_crowded(struct rq *rq, struct mt_ds_cpu *c)
{
	struct mt_server *server, *next;
	LIST_HEAD(all);

	list_splice_init(&c->crowded, &all);
	list_for_each_entry_safe(server, next, &all, crowd) {
		list_del_init(&server->crowd);
		place_contenders(rq, server);
	}
}

/* Lock's offers that were taken, or withdrawn, count no longer. */
static void look_at_contenders(struct rq *rq, struct mt_ds_cpu *c, u64 now)
{
	u64 ns = rq->curr->macrotick.ds.urgent ? 2 * c->poll_ns : MT_DS_POLL_MAX_NS;

	look_at_urgent(rq, c);
	look_at_crowded(rq, c);
	c->poll_ns = min_t(u64, ns, MT_DS_POLL_MAX_NS);
	c->poll = mt_ds_has_contenders(c) ? now + c->poll_ns : U64_MAX;
}

static void look(struct rq *rq, struct mt_ds_cpu *c, u64 now)
{
	look_at_contenders(rq, c, now);
	mt_ds_relieve(rq);
	want_settle(c);
}

/* Open servers are no crowded ones, and their threads return from credit. */
static void leave_contention(struct rq *rq, struct mt_ds_cpu *c)
{
	struct mt_server *server, *next_server;
	struct task_struct *p, *next;

	list_for_each_entry_safe(server, next_server, &c->crowded, crowd) {
		if (server->open)
			list_del_init(&server->crowd);
	}
	list_for_each_entry_safe(p, next, &c->urgent, macrotick.ds.ready) {
		if (!p->macrotick.ds.server->open)
			continue;
		take_back(rq, p);
		add_ready(rq, p, false);
	}
}

/* Servers have opened. Once for all of them: the length of a refill counts. */
static __always_inline void bring_home(struct rq *rq, struct mt_ds_cpu *c)
{
	if (unlikely(mt_ds_has_contenders(c)))
		leave_contention(rq, c);
}

/* How many threads are ready thereby: the caller adds them to those of the run queue, and brings others home. */
static unsigned int begin_service(struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	server->open = true;
	if (server->nr_ready) {
		end_throttling(server, now);
		link_server(c, server);
	}
	return server->nr_ready;
}

static void open_server(struct rq *rq, struct mt_ds_cpu *c, struct mt_server *server)
{
	add_nr_running(rq, begin_service(c, server, ktime_get()));
	bring_home(rq, c);
}

static void close_server(struct rq *rq, struct mt_ds_cpu *c, struct mt_server *server)
{
	if (rq->curr->macrotick.ds.linked && rq->curr->macrotick.ds.server == server)
		note_contender(rq, rq->curr);
	if (server->nr_ready) {
		sub_nr_running(rq, server->nr_ready);
		unlink_server(c, server);
		server->closed = ktime_get();
	}
	server->open = false;
	if (c->limited == server)
		WRITE_ONCE(c->limited, NULL);
	place_contenders(rq, server);
	poll_contenders(rq, c);
	want_settle(c);
	rearm(c);
}

/* The first instant of a refill after another one. */
static u64 refill_after(u64 now)
{
	return (div64_u64(now - mt_ds_phase, mt_ds_period) + 1) * mt_ds_period + mt_ds_phase;
}

/* Something of its budget is going to be used: it is refilled next time. */
static void touch(struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	if (server->touched || !server->budget)
		return;
	server->touched = true;
	list_add_tail(&server->refill, &c->touched);
	if (c->refill == U64_MAX)
		c->refill = refill_after(now);
}

static void charge(struct rq *rq, struct mt_server *server, u64 delta)
{
	server->usage += delta;
	server->left -= delta;
	/* There is a bound to what is paid for: its group may hold locks. */
	if (unlikely(rq->curr->macrotick.ds.urgent))
		server->debt = min(server->debt + delta, server->budget + MT_DS_AWAITED_MAX * MT_DS_POLL_NS);
	/* A CPU that goes off line must be rid of everybody. */
	if (server->left > 0 || !server->open || unlikely(!cpu_active(cpu_of(rq))))
		return;
	server->exhaustions++;
	close_server(rq, mt_ds_cpu_of(rq), server);
	if (!mt_ds_cpu_of(rq)->catching_up)
		resched(rq, mt_ds_cpu_of(rq));
}

/**
 * mt_ds_account - charge the running thread's server
 * @rq: the run queue, locked, its clock up to date
 */
void mt_ds_account(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	s64 delta;

	if (rq->curr->sched_class != &macrotick_ds_sched_class)
		return;
	delta = update_curr_common(rq);
	if (delta > 0 && c->charged)
		charge(rq, c->charged, delta);
}

static void forget_refill(struct mt_ds_cpu *c, struct mt_server *server)
{
	if (!server->touched)
		return;
	server->touched = false;
	list_del(&server->refill);
	/* The period may be another one when something is to be refilled again. */
	if (list_empty(&c->touched))
		c->refill = U64_MAX;
}

/* Something is always left: it opens at every refill. */
static void pay_debt(struct mt_server *server)
{
	u64 most = max(server->budget - min_t(u64, server->budget, MT_DS_MIN_NS), server->budget / 2);
	u64 paid = min(server->debt, most);

	server->debt -= paid;
	server->left -= paid;
}

/* How many threads are ready thereby. */
static unsigned int refill_one(struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	server->touched = false;
	server->left = server->budget;
	if (unlikely(server->debt))
		pay_debt(server);
	server->refills++;
	return server->open ? 0 : begin_service(c, server, now);
}

/*
 * What runs goes on in the new period. Whether threads starve is looked at
 * outside of this, whose length counts: the timer comes once more, at once.
 */
static void refill(struct rq *rq, struct mt_ds_cpu *c, u64 now)
{
	unsigned int nr_ready = 0;
	struct mt_server *server;

	c->refill = U64_MAX;
	list_for_each_entry(server, &c->touched, refill)
		nr_ready += refill_one(c, server, now);
	INIT_LIST_HEAD(&c->touched);
	add_nr_running(rq, nr_ready);
	bring_home(rq, c);
	want_settle(c);
	if (unlikely(mt_ds_look_is_due(rq)))
		c->poll = min(c->poll, c->armed);
	if (c->charged)
		touch(c, c->charged, now);
}

/* A server runs from an instant on. What runs on credit has no limit. */
static void set_limit(struct mt_ds_cpu *c, struct mt_server *server, u64 from)
{
	if (server && !server->open)
		server = NULL;
	WRITE_ONCE(c->limited, server);
	c->foreseen = 0;
	if (server)
		c->limit = from + max_t(s64, server->left, MT_DS_MIN_NS);
}

/*
 * Whose budget is used next is known where the timer is programmed anyway. To
 * program it once more, where the thread begins, takes longer than all the rest
 * of a pick. It begins as much later as others did. If it has not begun by its
 * limit, where preemption is off, it gets another one when it does.
 */
static void foresee(struct rq *rq, struct mt_ds_cpu *c, const struct task_struct *first, u64 now)
{
	struct mt_server *next = takes_over(rq, first) ? first->macrotick.ds.server : c->charged;

	if (next == c->charged || unlikely(c->foreseen && c->limited == next)) {
		set_limit(c, c->charged, now);
		return;
	}
	touch(c, next, now);
	set_limit(c, next, now + c->lag);
	c->foreseen = rq_clock(rq);
}

/*
 * The longest of late: a limit that is too near costs an interrupt, and MT_DS_MIN_NS
 * beyond the budget. Who was delayed otherwise, by a window, tells nothing.
 */
static void note_lag(struct rq *rq, struct mt_ds_cpu *c)
{
	u64 lag = rq_clock(rq) - c->foreseen;

	c->foreseen = 0;
	if (lag < MT_DS_MIN_NS)
		c->lag = max(lag, c->lag - c->lag / 8);
}

/* Everything that is due at an instant. The caller programs the timer. */
static void catch_up(struct rq *rq, struct mt_ds_cpu *c)
{
	struct task_struct *first;
	u64 now;

	c->catching_up = true;
	update_rq_clock(rq);
	mt_ds_account(rq);
	now = ktime_get();
	if (now >= c->refill)
		refill(rq, c, now);
	else if (unlikely(now >= c->poll))
		look(rq, c, now);
	first = mt_ds_first(c);
	foresee(rq, c, first, now);
	c->catching_up = false;
	resched_for(rq, first);
}

static enum hrtimer_restart mt_ds_timer_fn(struct hrtimer *timer)
{
	struct mt_ds_cpu *c = container_of(timer, struct mt_ds_cpu, timer);
	struct rq *rq = this_rq();

	/* A CPU that went off line has left it to this one, and may be back. */
	if (unlikely(c != mt_ds_cpu_of(rq))) {
		WRITE_ONCE(c->armed, U64_MAX);
		WRITE_ONCE(c->limited, NULL);
		if (cpu_online(c->cpu))
			irq_work_queue_on(&c->work, c->cpu);
		return HRTIMER_NORESTART;
	}
	raw_spin_rq_lock(rq);
	catch_up(rq, c);
	c->armed = next_event(c);
	raw_spin_rq_unlock(rq);
	if (c->armed == U64_MAX)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(c->armed));
	return HRTIMER_RESTART;
}

static void mt_ds_work_fn(struct irq_work *work)
{
	struct rq *rq = this_rq();
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	raw_spin_rq_lock(rq);
	catch_up(rq, c);
	program_timer(c);
	raw_spin_rq_unlock(rq);
	if (mt_ds_settle(rq))
		irq_work_queue_on(&c->work, c->cpu);
}

/**
 * mt_ds_link - a thread is ready
 * @rq: its run queue, locked
 * @server: what serves it there
 * @p: the thread
 * @head: before its equals
 */
void mt_ds_link(struct rq *rq, struct mt_server *server, struct task_struct *p, bool head)
{
	p->macrotick.ds.server = server;
	mt_ds_wait(rq, p);
	if (unlikely(p->macrotick.ds.is_watched || !server->budget || owns_unnoticed(p)))
		mt_ds_watch_here(mt_ds_cpu_of(rq), p, !server->budget || p->macrotick.ds.relieved || owns_unnoticed(p));
	if (likely(server->open || !p->pi_blocked_on)) {
		add_ready(rq, p, head);
		return;
	}
	mt_ds_account(rq);
	end_credit(rq);
	place_contender(rq, p);
	poll_contenders(rq, mt_ds_cpu_of(rq));
	rearm(mt_ds_cpu_of(rq));
}

/**
 * mt_ds_unlink - a thread is not ready any longer
 * @rq: its run queue, locked
 * @p: the thread
 */
void mt_ds_unlink(struct rq *rq, struct task_struct *p)
{
	if (likely(p->macrotick.ds.linked))
		remove_ready(rq, p);
	else
		take_back(rq, p);
	list_del(&p->macrotick.ds.waits);
	p->macrotick.ds.server = NULL;
}

/* Behind its equals. */
void mt_ds_requeue(struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	if (ds->linked)
		list_move_tail(&ds->ready, &ds->server->ready[ds->prio]);
}

/* The server that runs is the one that is bounded. */
static void limit_charged(struct mt_ds_cpu *c)
{
	u64 now = ktime_get();

	touch(c, c->charged, now);
	set_limit(c, c->charged, now);
	rearm(c);
}

/**
 * mt_ds_go_on - what runs has not been taken over from, though that was foreseen
 * @rq: this CPU's run queue, locked
 */
void mt_ds_go_on(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	if (c->charged)
		limit_charged(c);
}

/**
 * mt_ds_begin - a thread is going to run
 * @rq: its CPU's run queue, locked
 * @p: the thread, queued
 */
void mt_ds_begin(struct rq *rq, struct task_struct *p)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	p->se.exec_start = rq_clock_task(rq);
	c->charged = p->macrotick.ds.server;
	/* Without a refill in between its end has only become later, or it is what was foreseen. */
	if (c->charged == READ_ONCE(c->limited)) {
		if (c->foreseen)
			note_lag(rq, c);
		return;
	}
	if (unlikely(p->macrotick.ds.urgent))
		poll_within(c, MT_DS_POLL_NS);
	if (likely(c->charged))
		limit_charged(c);
}

/* Its server may have closed before it was blocked. */
static void contend(struct rq *rq, struct mt_ds_cpu *c, struct task_struct *p)
{
	note_contender(rq, p);
	if (!p->macrotick.ds.contending || p->macrotick.ds.server->open)
		return;
	note_crowd(rq, p->macrotick.ds.server);
	poll_within(c, MT_DS_POLL_MAX_NS);
	rearm(c);
}

/**
 * mt_ds_end - a thread has run
 * @rq: the run queue, locked
 * @p: the thread, queued or not
 */
void mt_ds_end(struct rq *rq, struct task_struct *p)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	mt_ds_account(rq);
	c->charged = NULL;
	if (unlikely(owns_unnoticed(p))) {
		mt_ds_watch_here(c, p, true);
		want_settle(c);
	}
	if (unlikely(p->pi_blocked_on || p->macrotick.ds.contending))
		contend(rq, c, p);
}

/* A CPU goes off line: whatever it has must be taken from it, budget or not. Its run queue is locked. */
void mt_ds_offline(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct mt_server *server;

	/* It only gets another root domain. */
	if (cpu_active(c->cpu))
		return;
	list_for_each_entry(server, &c->servers, node) {
		touch(c, server, ktime_get());
		if (!server->open)
			open_server(rq, c, server);
		server->left = S64_MAX / 2;	/* until it is back, and refilled */
	}
	look_at_crowded(rq, c);
	want_settle(c);
}

/* No refill would serve those who are there. */
static void make_strays(struct mt_ds_cpu *c, struct mt_server *server)
{
	struct task_struct *p;
	unsigned int prio;

	for_each_set_bit(prio, server->prios, MAX_RT_PRIO) {
		list_for_each_entry(p, &server->ready[prio], macrotick.ds.ready)
			mt_ds_watch_here(c, p, true);
	}
}

/**
 * mt_ds_set_budget - give a server another budget
 * @rq: its CPU's run queue, locked, its clock up to date
 * @server: the server
 * @budget: in ns per period; zero: its threads are to go elsewhere
 */
void mt_ds_set_budget(struct rq *rq, struct mt_server *server, u64 budget)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	mt_ds_account(rq);
	if (budget && !server->budget)
		list_add_tail(&server->node, &c->servers);
	else if (!budget && server->budget)
		list_del(&server->node);
	server->left = budget ? server->left + (s64)(budget - server->budget) : 0;
	if (!budget)
		server->debt = 0;
	server->budget = budget;
	c->limited = NULL;
	if (server->left > 0 && !server->open)
		open_server(rq, c, server);
	else if (server->left <= 0 && server->open && (!budget || cpu_active(c->cpu)))
		close_server(rq, c, server);
	if (budget)
		touch(c, server, ktime_get());
	else
		forget_refill(c, server);
	if (!budget)
		make_strays(c, server);
	/* The limit of what runs may be another one. */
	if (cpu_online(c->cpu))
		irq_work_queue_on(&c->work, c->cpu);
}

/* Another place among the groups. With the run queue locked. */
void mt_ds_set_priority(struct rq *rq, struct mt_server *server, unsigned int priority)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	bool linked = !list_empty(&server->order);

	if (linked)
		unlink_server(c, server);
	server->priority = priority;
	if (linked)
		link_server(c, server);
	resched(rq, c);
	/* Another group may be the one to serve the owner of a lock. */
	want_settle(c);
}

static void __init init_cpu(struct mt_ds_cpu *c, unsigned int cpu)
{
	unsigned int i;

	c->cpu = cpu;
	c->refill = U64_MAX;
	c->armed = U64_MAX;
	c->poll = U64_MAX;
	for (i = 0; i < MT_GROUP_PRIOS; i++)
		INIT_LIST_HEAD(&c->order[i]);
	__set_bit(MT_GROUP_PRIOS, c->prios);
	INIT_LIST_HEAD(&c->servers);
	INIT_LIST_HEAD(&c->touched);
	INIT_LIST_HEAD(&c->urgent);
	INIT_LIST_HEAD(&c->crowded);
	INIT_LIST_HEAD(&c->watched);
	INIT_LIST_HEAD(&c->waiting);
	hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	c->timer.function = mt_ds_timer_fn;
	c->work = IRQ_WORK_INIT_HARD(mt_ds_work_fn);
}

void __init macrotick_ds_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		init_cpu(per_cpu_ptr(&mt_ds_cpus, cpu), cpu);
}
