// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the order of a CPU's servers, and of the claims in each.
 *
 * Each priority has a queue of servers with ready threads. Servers with an
 * exhausted budget are in a separate list. In a later period they are open
 * again: the next look at the queue finds that out (queue_at()). A refill
 * therefore copies a bitmap, however many servers it opens. A server that
 * closes takes all of its threads with it at once.
 *
 * A closed server still serves, on credit, a thread that was offered a lock.
 * The owner hands the lock to the first waiter. This waiter becomes the owner
 * when it runs, and keeps all other threads from the lock until then. That
 * takes some hundred instructions, because the waiter may not spin meanwhile
 * (macrotick_contends()). The service ends after them (macrotick_unblocked()).
 */
#include "ds.h"

static unsigned int order_of(const struct mt_server *server)
{
	return MT_GROUP_MAX_PRIO - server->priority;
}

/* Returns a queue in which servers that were closed in an earlier period are open. */
static struct mt_ds_queue *queue_at(struct mt_ds_cpu *c, unsigned int i)
{
	struct mt_ds_queue *queue = &c->queue[i];

	if (unlikely(queue->closed_in != c->period)) {
		queue->closed_in = c->period;
		list_splice_tail_init(&queue->closed, &queue->open);
	}
	return queue;
}

/* Returns how many of a server's ready threads count as runnable on the run queue. */
static unsigned int nr_runnable(const struct mt_ds_cpu *c, const struct mt_server *server)
{
	return mt_ds_is_open(c, server) ? server->nr_ready : server->credit;
}

static void begin_throttling(const struct mt_ds_cpu *c, struct mt_server *server)
{
	if (!mt_ds_is_open(c, server))
		server->closed = ktime_get();
}

/*
 * Returns how long a server's ready threads have waited since it closed. A
 * refill may have opened the server unnoticed.
 */
static u64 throttled_since(const struct mt_ds_cpu *c, const struct mt_server *server, u64 closed,
			   u64 now)
{
	u64 until = mt_ds_is_open(c, server) ? min(now, mt_ds_refill_after(closed)) : now;

	return max_t(s64, until - closed, 0);
}

static void end_throttling(const struct mt_ds_cpu *c, struct mt_server *server, u64 now)
{
	if (server->closed)
		server->throttled += throttled_since(c, server, server->closed, now);
	server->closed = 0;
}

/*
 * Returns the throttled time up to now, in ns. Works without the lock: it looks
 * again if the server was opened or closed meanwhile.
 */
u64 mt_ds_throttled(const struct mt_ds_cpu *c, const struct mt_server *server)
{
	u64 sum, closed, since;

	do {
		sum = READ_ONCE(server->throttled);
		closed = READ_ONCE(server->closed);
		since = closed ? throttled_since(c, server, closed, ktime_get()) : 0;
	} while (sum != READ_ONCE(server->throttled) || closed != READ_ONCE(server->closed));
	return sum + since;
}

/**
 * mt_ds_put_in - queues a server with ready threads among the others
 * @rq: its CPU's run queue, locked
 * @server: the server, not queued; without a budget or a ready thread it stays so
 */
void mt_ds_put_in(struct rq *rq, struct mt_server *server)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	unsigned int i = order_of(server), n = nr_runnable(c, server);
	struct mt_ds_queue *queue = queue_at(c, i);

	lockdep_assert_rq_held(rq);
	if (!server->nr_ready || !server->budget)
		return;
	begin_throttling(c, server);
	if (n) {
		list_add_tail(&server->order, &queue->open);
		__set_bit(i, c->open);
		add_nr_running(rq, n);
	} else {
		list_add_tail(&server->order, &queue->closed);
		queue->closed_in = c->period;
	}
	__set_bit(i, c->ready);
	c->nr_closed += server->nr_ready - n;
}

/**
 * mt_ds_take_out - dequeues a server that is about to change, or has no ready thread
 * @rq: its CPU's run queue, locked
 * @server: the server
 */
void mt_ds_take_out(struct rq *rq, struct mt_server *server)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	unsigned int i = order_of(server), n = nr_runnable(c, server);
	struct mt_ds_queue *queue = queue_at(c, i);

	lockdep_assert_rq_held(rq);
	if (list_empty(&server->order))
		return;
	if (unlikely(server->closed))
		end_throttling(c, server, ktime_get());
	list_del_init(&server->order);
	if (list_empty(&queue->open)) {
		__clear_bit(i, c->open);
		if (list_empty(&queue->closed))
			__clear_bit(i, c->ready);
	}
	if (n)
		sub_nr_running(rq, n);
	c->nr_closed -= server->nr_ready - n;
}

/* A server gives no more credit than one budget can pay. */
static bool gives_credit(const struct mt_server *server)
{
	return !list_empty(&server->offered) && server->debt < server->budget;
}

/**
 * mt_ds_close - closes an open server that has exhausted its budget
 * @rq: its CPU's run queue, locked
 * @server: the server
 *
 * Has the effect of mt_ds_take_out() and mt_ds_put_in(), for a server that
 * stays in its queue.
 */
void mt_ds_close(struct rq *rq, struct mt_server *server)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);
	struct mt_ds_queue *queue = queue_at(c, order_of(server));
	u64 now = ktime_get();
	unsigned int n;

	lockdep_assert_rq_held(rq);
	end_throttling(c, server, now);
	server->closed_in = c->period;
	server->credit = gives_credit(server);
	if (list_empty(&server->order))
		return;
	server->closed = now;
	n = server->nr_ready - server->credit;
	c->nr_closed += n;
	sub_nr_running(rq, n);
	list_move_tail(&server->order, server->credit ? &queue->open : &queue->closed);
	if (list_empty(&queue->open))
		__clear_bit(order_of(server), c->open);
}

/**
 * mt_ds_open_all - begins a server period: all servers are open
 * @rq: the CPU's run queue, locked
 * @period: its number
 */
void mt_ds_open_all(struct rq *rq, u64 period)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	c->period = period;
	bitmap_copy(c->open, c->ready, MT_GROUP_PRIOS + 1);
	add_nr_running(rq, c->nr_closed);
	c->nr_closed = 0;
}

/**
 * mt_ds_first - returns the claim that the servers want a CPU to run
 * @c: the CPU's servers, under its run queue's lock
 * @server: set to the server that serves the claim
 *
 * Returns: the claim, or NULL.
 */
struct mt_claim *mt_ds_first(struct mt_ds_cpu *c, struct mt_server **server)
{
	unsigned int i = sched_find_first_bit(c->open);
	struct task_struct *offered;
	struct list_head *ready;
	struct mt_server *first;

	if (i == MT_GROUP_PRIOS)
		return NULL;
	first = list_first_entry(&queue_at(c, i)->open, struct mt_server, order);
	*server = first;
	if (unlikely(!mt_ds_is_open(c, first))) {
		offered = list_first_entry(&first->offered, struct task_struct,
					   macrotick.ds.offers);
		return &offered->macrotick.ds.own;
	}
	ready = &first->ready[sched_find_first_bit(first->prios)];
	return list_first_entry(ready, struct mt_claim, ready);
}

/* Counts one ready thread more, or less. */
static void count(struct rq *rq, struct mt_server *server, int by)
{
	struct mt_ds_cpu *c = mt_ds_cpu_of(rq);

	server->nr_ready += by;
	if (unlikely(list_empty(&server->order)))
		return;
	if (unlikely(!mt_ds_is_open(c, server)))
		c->nr_closed += by;
	else if (by > 0)
		add_nr_running(rq, 1);
	else
		sub_nr_running(rq, 1);
}

/**
 * mt_ds_link - queues the claim of a thread that is ready
 * @rq: its run queue, locked
 * @claim: the claim, not queued
 * @server: the server of the claim
 * @head: before its equals
 */
void mt_ds_link(struct rq *rq, struct mt_claim *claim, struct mt_server *server, bool head)
{
	lockdep_assert_rq_held(rq);
	claim->server = server;
	claim->queue = claim->prio;
	if (head)
		list_add(&claim->ready, &server->ready[claim->queue]);
	else
		list_add_tail(&claim->ready, &server->ready[claim->queue]);
	__set_bit(claim->queue, server->prios);
	count(rq, server, 1);
	if (server->nr_ready == 1)
		mt_ds_put_in(rq, server);
}

/**
 * mt_ds_unlink - dequeues the claim of a thread that is no longer ready
 * @rq: its run queue, locked
 * @claim: its claim, queued
 */
void mt_ds_unlink(struct rq *rq, struct mt_claim *claim)
{
	struct mt_server *server = claim->server;

	lockdep_assert_rq_held(rq);
	if (server->nr_ready == 1)
		mt_ds_take_out(rq, server);
	list_del(&claim->ready);
	if (list_empty(&server->ready[claim->queue]))
		__clear_bit(claim->queue, server->prios);
	claim->server = NULL;
	count(rq, server, -1);
}

/* Moves a claim behind its equals. */
void mt_ds_requeue(struct mt_claim *claim)
{
	if (claim->server)
		list_move_tail(&claim->ready, &claim->server->ready[claim->queue]);
}

/**
 * mt_ds_update_credit - updates the credit after a server closed, or offers of locks changed
 * @rq: its CPU's run queue, locked
 * @server: the server
 */
void mt_ds_update_credit(struct rq *rq, struct mt_server *server)
{
	bool credit = gives_credit(server);

	if (mt_ds_is_open(mt_ds_cpu_of(rq), server) || server->credit == credit)
		return;
	mt_ds_take_out(rq, server);
	server->credit = credit;
	mt_ds_put_in(rq, server);
}

/**
 * mt_ds_note_offered - notes a ready thread that is blocked on a lock
 * @rq: its run queue, locked
 * @p: the thread, which its group serves
 *
 * The thread was offered the lock, or is about to sleep.
 */
void mt_ds_note_offered(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	lockdep_assert_rq_held(rq);
	if (!ds->own.server || ds->contends)
		return;
	WRITE_ONCE(ds->contends, true);
	list_add_tail(&ds->offers, &ds->own.server->offered);
	mt_ds_update_credit(rq, ds->own.server);
}

/**
 * mt_ds_forget_offered - forgets a thread that is no longer blocked, or not ready
 * @rq: its run queue, locked
 * @p: the thread, with its claim still queued
 */
void mt_ds_forget_offered(struct rq *rq, struct task_struct *p)
{
	struct macrotick_ds *ds = &p->macrotick.ds;

	lockdep_assert_rq_held(rq);
	WRITE_ONCE(ds->contends, false);
	list_del(&ds->offers);
	mt_ds_update_credit(rq, ds->own.server);
}

void __init mt_ds_order_init(struct mt_ds_cpu *c)
{
	unsigned int i;

	for (i = 0; i < MT_GROUP_PRIOS; i++) {
		INIT_LIST_HEAD(&c->queue[i].open);
		INIT_LIST_HEAD(&c->queue[i].closed);
	}
	__set_bit(MT_GROUP_PRIOS, c->open);
	__set_bit(MT_GROUP_PRIOS, c->ready);
	c->period = 1;
}
