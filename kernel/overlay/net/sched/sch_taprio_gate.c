// SPDX-License-Identifier: GPL-2.0-only
/*
 * taprio: exact gates. Included by sch_taprio.c.
 *
 * A gate of taprio opens when its timer expires in a softirq, and the frames
 * leave when NET_TX runs. With exact gates, a thread does both. A hard timer
 * wakes it a lead before the instant. Within the lead it takes the locks that
 * could be in the way: this CPU's softirqs and the lock of the qdisc. It makes
 * the next entry current, waits for the instant, and sends. From the instant to
 * the driver there is one constant path.
 *
 * Everything else follows from the clock. A dequeue first verifies that the
 * current entry is still in force. So nothing has to run at a boundary where no
 * frame waits. A dequeue that leaves frames behind arms the timer, for the next
 * entry that opens a gate of theirs.
 *
 * A new schedule takes effect at its base time, and not at the boundary before.
 * No frame that would end after this instant starts under the old one.
 *
 * The thread is called gate/DEV. It is SCHED_FIFO. User space can give it
 * another policy, CPU or supply. It takes (lead * openings) of its CPU,
 * during which nothing else leaves the device.
 *
 * The lock of the qdisc protects all that is here, the current entry included.
 */
#include <linux/capability.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#define TAPRIO_GATE_LEAD_DEFAULT	(60 * NSEC_PER_USEC)
#define TAPRIO_GATE_LEAD_MIN		(1 * NSEC_PER_USEC)
#define TAPRIO_GATE_LEAD_MAX		(1 * NSEC_PER_MSEC)
/* A dequeue after a long pause, or one that arms the timer, looks at all entries. */
#define TAPRIO_GATE_ENTRIES_MAX		1024

static bool taprio_gate_is_exact(const struct taprio_sched *q)
{
	return q->gate.thread;
}

static struct sched_gate_list *taprio_gate_list(const struct taprio_sched *q,
						struct sched_gate_list __rcu *list)
{
	return rcu_dereference_protected(list, lockdep_is_held(qdisc_lock(q->root)));
}

/* The start of the next schedule; it begins with a cycle. */
static ktime_t taprio_gate_switch(const struct sched_gate_list *admin)
{
	return admin ? admin->cycle_end_time : KTIME_MAX;
}

/* Makes the entry current that is in force at @now. */
static void taprio_gate_enter(struct taprio_sched *q, ktime_t now)
{
	struct sched_gate_list *oper = taprio_gate_list(q, q->oper_sched);
	struct sched_gate_list *admin = taprio_gate_list(q, q->admin_sched);
	int tc, num_tc = netdev_get_num_tc(qdisc_dev(q->root));
	struct taprio_gate *gate = &q->gate;
	struct sched_entry *entry;
	ktime_t start, begin, end;
	s64 cycles;

	if (now >= taprio_gate_switch(admin)) {
		gate->anchor = taprio_gate_switch(admin);
		switch_schedules(q, &admin, &oper);
	}
	start = taprio_gate_switch(admin);
	if (!oper) {
		gate->begin = KTIME_MIN;
		gate->boundary = start;
		return;
	}

	/* Rounded down: the clock may have been set back. */
	cycles = div64_s64(now - gate->anchor, oper->cycle_time);
	gate->anchor += cycles * oper->cycle_time;
	if (gate->anchor > now)
		gate->anchor -= oper->cycle_time;

	/* The intervals sum up to the cycle: one of them contains @now. */
	end = gate->anchor;
	list_for_each_entry(entry, &oper->entries, list) {
		begin = end;
		end += entry->interval;
		if (now < end)
			break;
	}

	entry->end_time = end;
	for (tc = 0; tc < num_tc; tc++) {
		ktime_t close = KTIME_MAX;

		if (entry->gate_duration[tc] != oper->cycle_time)
			close = begin + entry->gate_duration[tc];
		entry->gate_close_time[tc] = min(close, start);
	}
	taprio_set_budgets(q, oper, entry);
	rcu_assign_pointer(q->current_entry, entry);
	gate->begin = begin;
	gate->boundary = min(end, start);
}

/* Before a dequeue: the current entry is that of the clock. */
static void taprio_gate_follow(struct Qdisc *sch)
{
	struct taprio_sched *q = qdisc_priv(sch);
	ktime_t now;

	if (!taprio_gate_is_exact(q))
		return;
	now = taprio_get_time(q);
	if (now >= q->gate.boundary || now < q->gate.begin)
		taprio_gate_enter(q, now);
}

/* Returns the traffic classes in which frames wait. */
static u32 taprio_gate_waiting(const struct taprio_sched *q)
{
	struct net_device *dev = qdisc_dev(q->root);
	int tc, i, num_tc = netdev_get_num_tc(dev);
	u32 waiting = 0;

	for (tc = 0; tc < num_tc; tc++) {
		const struct netdev_tc_txq *txq = &dev->tc_to_txq[tc];

		for (i = txq->offset; i < txq->offset + txq->count; i++)
			if (q->qdiscs[i]->q.qlen)
				waiting |= BIT(tc);
	}
	return waiting;
}

/* Returns the next start of an entry that opens a gate of @classes, or of a schedule. */
static ktime_t taprio_gate_next(const struct taprio_sched *q, u32 classes)
{
	struct sched_gate_list *oper = taprio_gate_list(q, q->oper_sched);
	ktime_t start = taprio_gate_switch(taprio_gate_list(q, q->admin_sched));
	struct sched_entry *entry;
	ktime_t begin;
	size_t i;

	entry = rcu_dereference_protected(q->current_entry,
					  lockdep_is_held(qdisc_lock(q->root)));
	if (!oper || !entry)
		return start;
	begin = entry->end_time;
	for (i = 0; i < oper->num_entries && begin < start; i++) {
		entry = list_next_entry_circular(entry, &oper->entries, list);
		if (entry->gate_mask & classes)
			return begin;
		begin += entry->interval;
	}
	return start;
}

/* After a dequeue that found nothing to send. */
static void taprio_gate_wait(struct Qdisc *sch)
{
	struct taprio_sched *q = qdisc_priv(sch);
	struct taprio_gate *gate = &q->gate;
	ktime_t at;
	u32 waiting;

	if (!taprio_gate_is_exact(q) || gate->opening || !sch->q.qlen)
		return;
	waiting = taprio_gate_waiting(q);
	if (!(waiting & ~gate->waiting))
		return;
	gate->waiting |= waiting;
	at = taprio_gate_next(q, waiting);
	if (at >= gate->armed)
		return;
	gate->armed = at;
	hrtimer_start(&gate->timer, ktime_sub_ns(at, gate->lead), HRTIMER_MODE_ABS_HARD);
}

static enum hrtimer_restart taprio_gate_timer(struct hrtimer *timer)
{
	struct taprio_gate *gate = container_of(timer, struct taprio_gate, timer);

	/* Pairs with the xchg() of taprio_gate_main(). */
	smp_store_release(&gate->due, true);
	wake_up_process(gate->thread);
	return HRTIMER_NORESTART;
}

/* Opens the gates for which the timer was armed. */
static void taprio_gate_open(struct Qdisc *sch)
{
	struct taprio_sched *q = qdisc_priv(sch);
	struct taprio_gate *gate = &q->gate;
	ktime_t at, now;

	local_bh_disable();
	spin_lock(qdisc_lock(sch));
	at = gate->armed;
	gate->armed = KTIME_MAX;
	gate->waiting = 0;
	if (!sch->q.qlen || test_bit(__QDISC_STATE_DEACTIVATED, &sch->state))
		goto unlock;

	now = taprio_get_time(q);
	/* Otherwise it is late, or the clock was set back: the dequeue looks for itself. */
	if (now < at && now >= ktime_sub_ns(at, gate->lead)) {
		taprio_gate_enter(q, at);
		while (taprio_get_time(q) < at)
			cpu_relax();
	}
	/*
	 * The frames go first, the timer for the rest follows. If another thread is
	 * sending, it dequeues again as soon as it gets the lock, and its last
	 * dequeue arms the timer. This one must not: without a dequeue the current
	 * entry is an old one, and the timer would expire again and again.
	 */
	gate->opening = true;
	qdisc_run(sch);
	gate->opening = false;
	if (!qdisc_is_running(sch))
		taprio_gate_wait(sch);
unlock:
	spin_unlock(qdisc_lock(sch));
	local_bh_enable();
}

static int taprio_gate_main(void *data)
{
	struct Qdisc *sch = data;
	struct taprio_sched *q = qdisc_priv(sch);

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!xchg(&q->gate.due, false)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		taprio_gate_open(sch);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Reads what a request asks for, before it changes anything. */
static int taprio_gate_prepare(struct Qdisc *sch, u32 flags, struct nlattr **tb,
			       struct netlink_ext_ack *extack)
{
	struct taprio_sched *q = qdisc_priv(sch);
	struct taprio_gate *gate = &q->gate;
	struct nlattr *lead = tb[TCA_TAPRIO_ATTR_LEAD];
	struct task_struct *thread;

	if (!(flags & TCA_TAPRIO_ATTR_FLAG_EXACT)) {
		if (!lead)
			return 0;
		NL_SET_ERR_MSG_ATTR(extack, lead, "Only exact gates have a lead");
		return -EINVAL;
	}
	if (flags != TCA_TAPRIO_ATTR_FLAG_EXACT) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_TAPRIO_ATTR_FLAGS],
				    "EXACT excludes TXTIME_ASSIST and FULL_OFFLOAD");
		return -EINVAL;
	}
	/* Any user can administer a namespace of his own. Its thread would delay others. */
	if (!capable(CAP_SYS_NICE)) {
		NL_SET_ERR_MSG(extack,
			       "Exact gates need CAP_SYS_NICE in the initial user namespace");
		return -EPERM;
	}
	gate->requested = lead ? nla_get_u32(lead) : TAPRIO_GATE_LEAD_DEFAULT;
	if (gate->requested < TAPRIO_GATE_LEAD_MIN || gate->requested > TAPRIO_GATE_LEAD_MAX) {
		NL_SET_ERR_MSG_ATTR(extack, lead, "The lead is not between 1 us and 1 ms");
		return -ERANGE;
	}
	if (gate->thread)
		return 0;

	hrtimer_setup(&gate->timer, taprio_gate_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	gate->boundary = KTIME_MAX;
	gate->begin = KTIME_MIN;
	gate->armed = KTIME_MAX;
	thread = kthread_create(taprio_gate_main, sch, "gate/%s", qdisc_dev(sch)->name);
	if (IS_ERR(thread)) {
		NL_SET_ERR_MSG(extack, "Cannot create the gate's thread");
		return PTR_ERR(thread);
	}
	sched_set_fifo(thread);
	gate->thread = thread;
	wake_up_process(thread);
	return 0;
}

/* Refuses lists for which the clock does not tell the entry. */
static int taprio_gate_check(const struct taprio_sched *q,
			     const struct sched_gate_list *new,
			     struct netlink_ext_ack *extack)
{
	const struct sched_entry *entry;
	s64 sum = 0;

	if (!taprio_gate_is_exact(q))
		return 0;
	if (new->num_entries > TAPRIO_GATE_ENTRIES_MAX) {
		NL_SET_ERR_MSG(extack, "Exact gates have at most 1024 entries");
		return -E2BIG;
	}
	list_for_each_entry(entry, &new->entries, list)
		sum += entry->interval;
	if (sum != new->cycle_time) {
		NL_SET_ERR_MSG(extack, "The intervals of exact gates must sum up to the cycle");
		return -EINVAL;
	}
	/* The thread may be more important than all that could remove it. */
	if ((s64)q->gate.requested * new->num_entries > new->cycle_time / 2) {
		NL_SET_ERR_MSG(extack, "The leads of all entries take more than half of the cycle");
		return -ERANGE;
	}
	return 0;
}

/* Commits a schedule that begins at @start. It cannot fail. */
static void taprio_gate_change(struct Qdisc *sch, struct sched_gate_list *new, ktime_t start)
{
	struct taprio_sched *q = qdisc_priv(sch);
	struct sched_gate_list *admin = taprio_gate_list(q, q->admin_sched);
	struct taprio_gate *gate = &q->gate;

	if (!admin && !rcu_access_pointer(q->oper_sched))
		hrtimer_setup(&gate->timer, taprio_gate_timer, q->clockid, HRTIMER_MODE_ABS_HARD);
	gate->lead = gate->requested;
	new->cycle_end_time = start;
	rcu_assign_pointer(q->admin_sched, new);
	if (admin)
		call_rcu(&admin->rcu, taprio_free_sched_cb);

	/* The current entry may end earlier or later than before. */
	taprio_gate_enter(q, taprio_get_time(q));
	hrtimer_cancel(&gate->timer);
	gate->armed = KTIME_MAX;
	gate->waiting = 0;
	taprio_gate_wait(sch);
	/* It may have got another affinity, and sleeps where it was. */
	wake_up_process(gate->thread);
}

/* The frames are gone. */
static void taprio_gate_reset(struct taprio_sched *q)
{
	if (!taprio_gate_is_exact(q))
		return;
	hrtimer_cancel(&q->gate.timer);
	q->gate.armed = KTIME_MAX;
	q->gate.waiting = 0;
}

/*
 * The timer stays idle now: the qdisc has been reset and detached, or it never
 * was attached.
 */
static void taprio_gate_destroy(struct taprio_sched *q)
{
	if (!taprio_gate_is_exact(q))
		return;
	hrtimer_cancel(&q->gate.timer);
	kthread_stop(q->gate.thread);
	q->gate.thread = NULL;
}

/*
 * Puts the lead and the thread into a dump, which then shows the schedules as
 * the clock has them. Devices of different namespaces can have the same name,
 * so the name does not identify the thread.
 */
static int taprio_gate_dump(struct taprio_sched *q, struct sk_buff *skb)
{
	if (!taprio_gate_is_exact(q))
		return 0;
	spin_lock_bh(qdisc_lock(q->root));
	taprio_gate_follow(q->root);
	spin_unlock_bh(qdisc_lock(q->root));
	return nla_put_u32(skb, TCA_TAPRIO_ATTR_LEAD, q->gate.lead) ||
	       nla_put_u32(skb, TCA_TAPRIO_ATTR_THREAD, task_pid_vnr(q->gate.thread));
}
