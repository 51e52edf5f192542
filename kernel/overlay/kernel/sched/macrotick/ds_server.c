// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: deferrable servers.
 *
 * Each CPU has one pinned hard hrtimer. It is set to the earlier of two instants.
 * One is the next refill of a used budget. The other is the end of the budget of
 * the server that runs or will run next. The timer may expire early, when its
 * reason no longer exists. Then its handler programs it again.
 *
 * A refill first charges the running server for the time until then, and
 * ignores any excess. It never charges the old period to the new budget. Then
 * the next period begins, without any work for the single servers. A server
 * notices the new period at its next use (mt_ds_look()).
 *
 * The kernel charges a server, by the clock of the run queue. It charges from
 * the switch to a thread that was picked for the server until the next switch
 * (mt_ds_run()), whatever class the thread has. The next budget pays for credit
 * (ds_order.c), as far as possible. Otherwise the threads of a group could get
 * time, and keep it from others, by passing a lock to each other.
 */
#include "ds.h"

DEFINE_PER_CPU(struct mt_ds_cpu, mt_ds_cpus);

/* The shortest limit of a server: the interrupt must let it run before it comes again. */
#define MT_DS_MIN_NS		(10 * NSEC_PER_USEC)

static u64 next_event(const struct mt_ds_cpu *c)
{
	return min3(c->refill, c->poll, READ_ONCE(c->limited) ? c->limit : U64_MAX);
}

/* Moves the timer to an earlier instant only: otherwise it expires in vain. On its own CPU. */
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

/* Whether a claim must replace the running thread. */
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
	/*
	 * Sleeps of less important threads that end at a refill wait for the
	 * thread that runs then.
	 */
	if (first)
		timershield_expect(first->task);
	resched_curr(rq);
}

/**
 * mt_ds_resched - reschedules a CPU if its servers prefer another thread
 * @rq: the CPU's run queue, locked
 */
void mt_ds_resched(struct rq *rq)
{
	struct mt_server *server = NULL;
	struct mt_claim *first = mt_ds_first(mt_ds_cpu_of(rq), &server);

	resched_for(rq, first, server);
}

/* Returns the number of a server period, from 1. Sets @end to its end. */
static u64 period_at(u64 now, u64 *end)
{
	u64 n = div64_u64(now - mt_ds_phase, mt_ds_period) + 1;

	*end = n * mt_ds_period + mt_ds_phase;
	return n;
}

/* Returns the instant of the first refill after an instant. */
u64 mt_ds_refill_after(u64 now)
{
	u64 end;

	period_at(now, &end);
	return end;
}

/* Pays for credit from the new budget. A part of the budget always remains. */
static void pay_debt(struct mt_server *server)
{
	u64 most = max(server->budget - min_t(u64, server->budget, MT_DS_MIN_NS),
		       server->budget / 2);
	u64 paid = min(server->debt, most);

	server->debt -= paid;
	server->left -= paid;
}

/**
 * mt_ds_look - brings a server up to its CPU's period
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
	/* A CPU that goes offline must let all its threads leave, with or without a budget. */
	server->left = likely(cpu_active(c->cpu)) ? server->budget : S64_MAX / 2;
	if (unlikely(server->debt))
		pay_debt(server);
}

/* Notes that a server's budget is about to be used: a refill comes at the end of this period. */
static void touch(struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	/*
	 * Nothing was used since the last refill, and all servers are open: any
	 * later period fits.
	 */
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
 * Charges a server. The next budget pays for time on credit (ds_order.c). It
 * does not pay for the excess from the end of a budget to the switch.
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
 * mt_ds_account - charges the running server
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

/*
 * Sets the limit of a server that runs from an instant on. Time on credit has
 * no limit: see ds_order.c.
 */
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
 * The running server goes on in the new period. The check for starved threads
 * is not part of the refill, because the length of a refill counts. The timer
 * expires once more, at once, for this check.
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
 * Sets the limit of the next server early. The timer is programmed here in any
 * case. Programming it again when the thread begins would take longer than the
 * rest of a pick. The limit assumes a delay like that of recent turns. Where
 * preemption is off, the thread may begin after that limit. It gets a new limit
 * when it begins.
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
 * Keeps the longest of the recent delays. A limit that is too near costs an
 * interrupt, and MT_DS_MIN_NS beyond the budget. A longer delay has another
 * cause, for example a window, and does not count.
 */
static void note_lag(struct rq *rq, struct mt_ds_cpu *c)
{
	u64 lag = rq_clock(rq) - c->foreseen;

	c->foreseen = 0;
	if (lag < MT_DS_MIN_NS)
		c->lag = max(lag, c->lag - c->lag / 8);
}

/* Does everything that is due. The caller programs the timer. */
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

	/* A CPU that went offline has left its timer to this CPU, and may be back. */
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

/* Sets the limit of the running server. */
static void limit_charged(struct mt_ds_cpu *c)
{
	u64 now = ktime_get();

	touch(c, c->charged, now);
	set_limit(c, c->charged, now);
	rearm(c);
}

/* Without a refill since, the end has only become later, or is the foreseen one. */
static void bound_charged(struct rq *rq, struct mt_ds_cpu *c)
{
	if (c->charged != READ_ONCE(c->limited))
		limit_charged(c);
	else if (c->foreseen)
		note_lag(rq, c);
}

/**
 * mt_ds_run - charges and limits the server of the thread that a CPU is about to run
 * @rq: its run queue, locked, its clock up to date
 * @next: the thread. It may have run before, and be picked for another server
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
			/* The pick is done: a server that closes here has lost its turn. */
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
 * A CPU goes offline: its threads must all leave, with or without a budget. The
 * caller holds the lock of its run queue.
 */
void mt_ds_offline(struct rq *rq)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	/* The CPU only gets another root domain. */
	if (cpu_active(c->cpu) || !c->nr_budgets)
		return;
	mt_ds_account(rq);
	mt_ds_open_all(rq, c->period + 1);
	mt_ds_resched(rq);
}

/**
 * mt_ds_set_budget - gives a server another budget
 * @rq: its CPU's run queue, locked, its clock up to date
 * @server: the server
 * @budget: in ns per period; zero: its threads have decided again without it, and
 *	any thread that is left has a place elsewhere
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
		c->refill = U64_MAX;	/* the period may change then */
	mt_ds_put_in(rq, server);
	mt_ds_update_credit(rq, server);
	/* The limit of the running server may change. */
	if (cpu_online(c->cpu))
		irq_work_queue_on(&c->work, c->cpu);
}

/* Changes a server's place among the groups. The caller holds the lock of the run queue. */
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
	hrtimer_setup(&c->timer, mt_ds_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	c->work = IRQ_WORK_INIT_HARD(mt_ds_work_fn);
}

void __init macrotick_ds_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		init_cpu(per_cpu_ptr(&mt_ds_cpus, cpu), cpu);
}
