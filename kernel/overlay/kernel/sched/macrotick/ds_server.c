// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: deferrable servers.
 *
 * One pinned hard hrtimer per CPU stands at the next refill, if anything was
 * used, or at the instant at which the server that runs, or is going to, has used
 * its budget, whichever is first. It may expire early, where what it stood for is
 * over: then it looks, and is programmed anew.
 *
 * A refill first charges what runs for the time until then, and lets whatever
 * was used in excess go: it never charges the old period to the new budget. Then
 * another period has begun, and that is all: a server finds out by itself when
 * it is looked at (mt_ds_look()).
 *
 * What is charged is a server, by the run queue's clock, from the switch to a
 * thread that was picked for it to the next one (mt_ds_run()), whatever class
 * the thread has. What is used on credit (ds_order.c) is paid, as far as can be,
 * out of the next budget: else the threads of a group could have time, and keep
 * it from others, by handing a lock to each other.
 */
#include "ds.h"

DEFINE_PER_CPU(struct mt_ds_cpu, mt_ds_cpus);

/* The limit of a server is no nearer: the interrupt must let it run before it comes again. */
#define MT_DS_MIN_NS		(10 * NSEC_PER_USEC)

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

/* Whether a claim is to take the place of what runs. */
static bool takes_over(struct rq *rq, const struct mt_claim *first, const struct mt_server *server)
{
	const struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	if (!c->charged && sched_class_above(rq->curr->sched_class, &macrotick_ds_sched_class))
		return false;
	return first->task != rq->curr || server != c->charged;
}

static void resched_for(struct rq *rq, const struct mt_claim *first, const struct mt_server *server)
{
	if (first ? !takes_over(rq, first, server) : !mt_ds_cpu_of(rq)->charged)
		return;
	/* The sleeps of others that end at a refill wait for whom it lets run. */
	if (first)
		timershield_expect(first->task);
	resched_curr(rq);
}

/**
 * mt_ds_resched - what the servers want a CPU to run may be something else
 * @rq: the CPU's run queue, locked
 */
void mt_ds_resched(struct rq *rq)
{
	struct mt_server *server = NULL;
	struct mt_claim *first = mt_ds_first(mt_ds_cpu_of(rq), &server);

	resched_for(rq, first, server);
}

/* The number of a server period, from 1, and the instant at which it ends. */
static u64 period_at(u64 now, u64 *end)
{
	u64 n = div64_u64(now - mt_ds_phase, mt_ds_period) + 1;

	*end = n * mt_ds_period + mt_ds_phase;
	return n;
}

/* The first instant of a refill after another one. */
u64 mt_ds_refill_after(u64 now)
{
	u64 end;

	period_at(now, &end);
	return end;
}

/* Something is always left. */
static void pay_debt(struct mt_server *server)
{
	u64 most = max(server->budget - min_t(u64, server->budget, MT_DS_MIN_NS),
		       server->budget / 2);
	u64 paid = min(server->debt, most);

	server->debt -= paid;
	server->left -= paid;
}

/**
 * mt_ds_look - bring a server up to its CPU's period
 * @c: the CPU's servers, under its run queue's lock
 * @server: the server
 */
void mt_ds_look(struct mt_ds_cpu *c, struct mt_server *server)
{
	if (likely(server->seen == c->period))
		return;
	server->seen = c->period;
	server->refills += server->used;
	server->used = false;
	/* A CPU that goes off line must be rid of everybody, budget or not. */
	server->left = likely(cpu_active(c->cpu)) ? server->budget : S64_MAX / 2;
	if (unlikely(server->debt))
		pay_debt(server);
}

/* Something of its budget is going to be used: there is a refill at the end of this period. */
static void touch(struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	/* Nothing was used since the last one, and all are open: any later period will do. */
	if (c->refill == U64_MAX)
		c->period = period_at(now, &c->refill);
	mt_ds_look(c, server);
	server->used = true;
}

static void close_server(struct rq *rq, struct mt_ds_cpu *c, struct mt_server *server)
{
	struct task_struct *curr = rq->curr;

	if (unlikely(curr->pi_blocked_on && curr->macrotick.ds.own.server == server))
		mt_ds_note_offered(rq, curr);
	mt_ds_close(rq, server);
	if (c->limited == server)
		WRITE_ONCE(c->limited, NULL);
}

/*
 * What runs on credit is taken from the next budget (ds_order.c). What is used in
 * excess is not: from where a budget ends to the switch.
 */
static void charge(struct rq *rq, struct mt_ds_cpu *c, struct mt_server *server, u64 delta)
{
	server->usage += delta;
	server->left -= delta;
	if (!mt_ds_is_open(c, server)) {
		if (c->ended)
			return;
		server->debt = min(server->debt + delta, server->budget);
		if (unlikely(server->credit || !list_empty(&server->offered)))
			mt_ds_update_credit(rq, server);
		return;
	}
	if (server->left > 0 || unlikely(!cpu_active(c->cpu)))
		return;
	server->exhaustions++;
	c->ended = true;
	close_server(rq, c, server);
	if (!c->catching_up)
		mt_ds_resched(rq);
}

/**
 * mt_ds_account - charge the server that runs
 * @rq: the run queue, locked, its clock up to date
 */
void mt_ds_account(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	s64 delta = rq_clock_task(rq) - c->since;

	lockdep_assert_rq_held(rq);
	if (!c->charged || delta <= 0)
		return;
	c->since = rq_clock_task(rq);
	charge(rq, c, c->charged, delta);
}

/* A server runs from an instant on. What runs on credit has no limit: see ds_order.c. */
static void set_limit(struct mt_ds_cpu *c, struct mt_server *server, u64 from)
{
	if (server && !mt_ds_is_open(c, server))
		server = NULL;
	WRITE_ONCE(c->limited, server);
	c->foreseen = 0;
	if (server)
		c->limit = from + max_t(s64, server->left, MT_DS_MIN_NS);
}

/*
 * What runs goes on in the new period. Whether threads starve is looked at
 * outside of this, whose length counts: the timer comes once more, at once.
 */
static void refill(struct rq *rq, struct mt_ds_cpu *c, u64 now)
{
	u64 end, period = period_at(now, &end);

	c->refill = U64_MAX;
	c->ended = false;
	mt_ds_open_all(rq, period);
	if (unlikely(mt_ds_look_is_due(rq)))
		c->poll = min(c->poll, c->armed);
	if (!c->charged)
		return;
	c->refill = end;
	mt_ds_look(c, c->charged);
	c->charged->used = true;
}

/*
 * Whose budget is used next is known where the timer is programmed anyway. To
 * program it once more, where the thread begins, takes longer than all the rest
 * of a pick. It begins as much later as others did. If it has not begun by its
 * limit, where preemption is off, it gets another one when it does.
 */
static void foresee(struct rq *rq, struct mt_ds_cpu *c, const struct mt_claim *first,
		    struct mt_server *next, u64 now)
{
	if (!first || !takes_over(rq, first, next))
		next = c->charged;
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
	struct mt_server *server = NULL;
	struct mt_claim *first;
	u64 now;

	c->catching_up = true;
	update_rq_clock(rq);
	if (c->charged)
		mt_ds_account(rq);
	now = ktime_get();
	if (now >= c->refill) {
		refill(rq, c, now);
	} else if (unlikely(now >= c->poll)) {
		c->poll = U64_MAX;
		mt_ds_relieve(rq);
	}
	first = mt_ds_first(c, &server);
	foresee(rq, c, first, server, now);
	c->catching_up = false;
	resched_for(rq, first, server);
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
	mt_ds_relieve_found(c);
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
	mt_ds_relieve_found(c);
}

/* The server that runs is the one that is bounded. */
static void limit_charged(struct mt_ds_cpu *c)
{
	u64 now = ktime_get();

	touch(c, c->charged, now);
	set_limit(c, c->charged, now);
	rearm(c);
}

/* Without a refill in between its end has only become later, or it is what was foreseen. */
static void bound_charged(struct rq *rq, struct mt_ds_cpu *c)
{
	if (c->charged != READ_ONCE(c->limited))
		limit_charged(c);
	else if (c->foreseen)
		note_lag(rq, c);
}

/**
 * mt_ds_run - a CPU is going to run a thread
 * @rq: its run queue, locked, its clock up to date
 * @next: the thread, which may have run before, and be picked for something else
 */
void mt_ds_run(struct rq *rq, struct task_struct *next)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct mt_server *server = c->picked_task == next ? c->picked : NULL;
	bool same = server == c->charged;

	c->picked_task = NULL;
	if (unlikely(rq->curr->pi_blocked_on))
		mt_ds_note_offered(rq, rq->curr);
	if (same && likely(!c->foreseen && !c->ended))
		return;
	if (!same || c->ended) {
		if (c->charged) {
			/* It has been decided what runs: a server that closes has lost its turn. */
			c->catching_up = true;
			mt_ds_account(rq);
			c->catching_up = false;
		}
		c->ended = false;
		c->charged = server;
		c->since = rq_clock_task(rq);
	}
	if (server)
		bound_charged(rq, c);
}

/*
 * A CPU goes off line: whatever it has must be taken from it, budget or not. Its
 * run queue is locked.
 */
void mt_ds_offline(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	/* It only gets another root domain. */
	if (cpu_active(c->cpu) || !c->nr_budgets)
		return;
	mt_ds_account(rq);
	mt_ds_open_all(rq, c->period + 1);
	mt_ds_resched(rq);
}

/**
 * mt_ds_set_budget - give a server another budget
 * @rq: its CPU's run queue, locked, its clock up to date
 * @server: the server
 * @budget: in ns per period; zero: its threads have been told, those that are left
 *	have a place elsewhere
 */
void mt_ds_set_budget(struct rq *rq, struct mt_server *server, u64 budget)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	bool was_open;

	mt_ds_account(rq);
	mt_ds_look(c, server);
	was_open = mt_ds_is_open(c, server);
	mt_ds_take_out(rq, server);
	c->nr_budgets += !!budget - !!server->budget;
	server->left = budget ? server->left + (s64)(budget - server->budget) : 0;
	server->budget = budget;
	server->debt = min(server->debt, budget);
	server->credit = false;
	if (budget && server->left > 0)
		server->closed_in = 0;
	else if (was_open)
		server->closed_in = c->period;
	c->limited = NULL;
	c->ended = false;
	if (budget)
		touch(c, server, ktime_get());
	else if (!c->nr_budgets)
		c->refill = U64_MAX;	/* the period may be another one then */
	mt_ds_put_in(rq, server);
	mt_ds_update_credit(rq, server);
	/* The limit of what runs may be another one. */
	if (cpu_online(c->cpu))
		irq_work_queue_on(&c->work, c->cpu);
}

/* Another place among the groups. With the run queue locked. */
void mt_ds_set_priority(struct rq *rq, struct mt_server *server, unsigned int priority)
{
	mt_ds_take_out(rq, server);
	server->priority = priority;
	mt_ds_put_in(rq, server);
	mt_ds_resched(rq);
}

static void __init init_cpu(struct mt_ds_cpu *c, unsigned int cpu)
{
	c->cpu = cpu;
	c->refill = U64_MAX;
	c->armed = U64_MAX;
	c->poll = U64_MAX;
	INIT_LIST_HEAD(&c->waiting);
	mt_ds_order_init(c);
	mt_ds_relief_init(c);
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
