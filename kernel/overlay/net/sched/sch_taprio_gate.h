/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * taprio: exact gates, their state and the calls from sch_taprio.c.
 *
 * sch_taprio.c includes this file once, before struct taprio_sched, and
 * sch_taprio_gate.c once, after all that it uses.
 */
#ifndef _NET_SCH_TAPRIO_GATE_H
#define _NET_SCH_TAPRIO_GATE_H

#include <linux/hrtimer.h>
#include <linux/macrotick_linux.h>
#include <linux/types.h>

struct nlattr;
struct netlink_ext_ack;
struct sched_gate_list;
struct sk_buff;
struct task_struct;
struct taprio_sched;

#ifdef CONFIG_NET_SCH_TAPRIO_EXACT

#define TAPRIO_GATE_FLAGS	TCA_TAPRIO_ATTR_FLAG_EXACT

/**
 * struct taprio_gate - exact gates of a qdisc
 * @thread: opens the gates; created together with the qdisc
 * @timer: wakes @thread a lead before a gate opens; hard, in the qdisc's clock
 * @begin: start of the current entry
 * @boundary: its end, or the start of the next schedule
 * @anchor: start of the operational schedule's current cycle
 * @armed: instant for which @timer is armed, KTIME_MAX if it is not
 * @waiting: traffic classes that @armed takes into account
 * @lead: in ns
 * @requested: the lead of the request in progress; under RTNL
 * @opening: @thread sends; it arms @timer afterwards
 * @due: set by @timer for @thread
 *
 * All but @thread, @requested and @due is protected by the lock of the qdisc.
 */
struct taprio_gate {
	struct task_struct	*thread;
	struct hrtimer		timer;
	ktime_t			begin;
	ktime_t			boundary;
	ktime_t			anchor;
	ktime_t			armed;
	u32			waiting;
	u32			lead;
	u32			requested;
	bool			opening;
	bool			due;
};

static bool taprio_gate_is_exact(const struct taprio_sched *q);
static int taprio_gate_prepare(struct Qdisc *sch, u32 flags, struct nlattr **tb,
			       struct netlink_ext_ack *extack);
static int taprio_gate_check(const struct taprio_sched *q,
			     const struct sched_gate_list *new,
			     struct netlink_ext_ack *extack);
static void taprio_gate_change(struct Qdisc *sch, struct sched_gate_list *new,
			       ktime_t start);
static void taprio_gate_follow(struct Qdisc *sch);
static void taprio_gate_wait(struct Qdisc *sch);
static void taprio_gate_reset(struct taprio_sched *q);
static void taprio_gate_destroy(struct taprio_sched *q);
static int taprio_gate_dump(struct taprio_sched *q, struct sk_buff *skb);

#else /* !CONFIG_NET_SCH_TAPRIO_EXACT */

#define TAPRIO_GATE_FLAGS	0

struct taprio_gate { };

static inline bool taprio_gate_is_exact(const struct taprio_sched *q)
{
	return false;
}

static inline int taprio_gate_prepare(struct Qdisc *sch, u32 flags,
				      struct nlattr **tb,
				      struct netlink_ext_ack *extack)
{
	return 0;
}

static inline int taprio_gate_check(const struct taprio_sched *q,
				    const struct sched_gate_list *new,
				    struct netlink_ext_ack *extack)
{
	return 0;
}

static inline void taprio_gate_change(struct Qdisc *sch,
				      struct sched_gate_list *new,
				      ktime_t start)
{
}

static inline void taprio_gate_follow(struct Qdisc *sch) { }
static inline void taprio_gate_wait(struct Qdisc *sch) { }
static inline void taprio_gate_reset(struct taprio_sched *q) { }
static inline void taprio_gate_destroy(struct taprio_sched *q) { }

static inline int taprio_gate_dump(struct taprio_sched *q, struct sk_buff *skb)
{
	return 0;
}

#endif /* CONFIG_NET_SCH_TAPRIO_EXACT */
#endif /* _NET_SCH_TAPRIO_GATE_H */
