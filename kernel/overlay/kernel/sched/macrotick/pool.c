// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: pools.
 *
 * A pool is an entity for threads that do not know jobs: the threads of a
 * control group, and the children that they fork. The class serves them like
 * any thread between two waits. This file has the rest: their order, the effect
 * of their own policies, and how they join and leave with their group.
 *
 * Outside its windows, a thread runs under its own policy if the pool has
 * slack, or if the budget of its group serves it (claim.c). Otherwise it waits.
 *
 * A thread follows its group by itself, on its way back to user space
 * (follow_group()). There it holds no lock, nothing else happens to it, and it
 * is on a CPU. Other contexts only mark the thread (mt_poke()). They move it to
 * another group, fork it, give its group another entity, or install a table.
 *
 * Lock order: cgroup_mutex > cgroup_threadgroup_rwsem > mt_control.
 */
#include <linux/cgroup.h>
#include <linux/task_work.h>
#include <uapi/linux/sched/types.h>

#include "internal.h"
#include "ds.h"

#define MT_POOL_FLAGS	(MACROTICK_ENTITY_POOL | MACROTICK_ENTITY_RR | \
			 MACROTICK_ENTITY_PRIORITY | MACROTICK_ENTITY_SLACK)

static bool is_slice(const struct macrotick_entity *in, bool in_turns)
{
	if (!in->slice_ns)
		return true;
	return in_turns && in->slice_ns >= MACROTICK_MIN_SLICE_NS &&
		in->slice_ns <= MACROTICK_MAX_SLICE_NS;
}

/* Checks and decodes the order and the slack of a pool. Only pools in turns have a slice. */
int mt_decode_pool(struct macrotick_install *arg, u32 index, const struct macrotick_entity *in,
		   struct macrotick_served *entity)
{
	u32 order = in->flags & (MACROTICK_ENTITY_RR | MACROTICK_ENTITY_PRIORITY);

	entity->pool = in->flags & MACROTICK_ENTITY_POOL;
	if (entity->pool && (in->flags & ~MT_POOL_FLAGS || in->max_misses || hweight32(order) > 1))
		return mt_refuse(arg, MACROTICK_ERR_ENTITY_FLAGS, index, 0);
	if (!is_slice(in, entity->pool && order))
		return mt_refuse(arg, MACROTICK_ERR_ENTITY_SLICE, index, 0);
	entity->slack = in->flags & MACROTICK_ENTITY_SLACK;
	entity->by_priority = order == MACROTICK_ENTITY_PRIORITY;
	if (entity->pool && order)
		entity->slice = in->slice_ns ?: MACROTICK_SLICE_NS;
	return 0;
}

/* In order of priorities, a thread of SCHED_FIFO or SCHED_DS takes no turns. */
static bool takes_turns(const struct task_struct *p)
{
	const struct macrotick_served *entity = p->macrotick.entity;
	int policy = p->macrotick.own_policy;

	return entity->slice &&
		!(entity->by_priority && (policy == SCHED_FIFO || policy == SCHED_DS));
}

/* The smaller rank goes first. Among equals, threads that take no turns go first. */
static unsigned int rank(const struct task_struct *p)
{
	const struct macrotick_task *m = &p->macrotick;

	return m->entity->by_priority ? 2 * (MAX_RT_PRIO - m->own_priority) + takes_turns(p) : 0;
}

static struct task_struct *of_turn(const struct rb_node *node)
{
	return rb_entry(node, struct task_struct, macrotick.turn);
}

static bool goes_before(struct rb_node *left, const struct rb_node *right)
{
	const struct macrotick_task *a = &of_turn(left)->macrotick, *b = &of_turn(right)->macrotick;

	if (a->turn_rank != b->turn_rank)
		return a->turn_rank < b->turn_rank;
	return a->turn_key < b->turn_key;
}

/*
 * Links a thread behind all that may go before it. Its place is fixed now. The
 * time that it uses moves it only at the end of its turn. After a swap that
 * changed the order, some threads may keep their old links.
 */
static void link_in_order(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;
	struct rb_node *before, *after;

	if (!entity->slice) {
		list_add_tail(&p->macrotick.ready, &entity->ready);
		return;
	}
	p->macrotick.turn_rank = rank(p);
	p->macrotick.turn_key = takes_turns(p) ? p->macrotick.used : 0;
	p->macrotick.ordered = true;
	rb_add_cached(&p->macrotick.turn, &entity->turns, goes_before);
	before = rb_prev(&p->macrotick.turn);
	after = rb_next(&p->macrotick.turn);
	if (before)
		list_add(&p->macrotick.ready, &of_turn(before)->macrotick.ready);
	else if (after)
		list_add_tail(&p->macrotick.ready, &of_turn(after)->macrotick.ready);
	else
		list_add_tail(&p->macrotick.ready, &entity->ready);
}

/* The thread is no longer ready, or will be linked again. */
void mt_pool_unlink(struct task_struct *p)
{
	rb_erase_cached(&p->macrotick.turn, &p->macrotick.entity->turns);
	p->macrotick.ordered = false;
}

/*
 * Turns follow virtual time: CPU time, weighted by nice value. A turn ends with
 * a tick or a window, and mostly ends late. Virtual time makes the shares
 * correct in the long run. A thread that joins or wakes up is at most one turn
 * behind the others.
 */
void mt_pool_link(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;
	u64 slice = READ_ONCE(entity->slice);	/* a swap can change it */

	if (p->macrotick.used + slice < entity->vtime)
		p->macrotick.used = entity->vtime - slice;
	link_in_order(p);
}

static void link_again(struct task_struct *p)
{
	list_del(&p->macrotick.ready);
	if (p->macrotick.ordered)
		mt_pool_unlink(p);
	link_in_order(p);
}

void mt_pool_account(struct task_struct *p, u64 delta)
{
	p->macrotick.used += mul_u64_u32_shr(delta,
					     sched_prio_to_wmult[p->static_prio - MAX_RT_PRIO], 22);
}

/**
 * mt_pool_turn - ends the turn of the first thread if it has used its time
 * @entity: a pool with threads that take turns, under its run queue's lock
 */
void mt_pool_turn(struct macrotick_served *entity)
{
	struct task_struct *p = list_first_entry_or_null(&entity->ready, struct task_struct,
							 macrotick.ready);
	struct task_struct *next;

	if (!p || !takes_turns(p))
		return;
	entity->vtime = max(entity->vtime, p->macrotick.used);
	if (list_is_last(&p->macrotick.ready, &entity->ready))
		return;
	next = list_next_entry(p, macrotick.ready);
	if (rank(next) == rank(p) && p->macrotick.used > next->macrotick.used + entity->slice)
		link_again(p);
}

/* Moves a thread behind the next one. */
void mt_pool_yield(struct task_struct *p)
{
	struct macrotick_served *entity = p->macrotick.entity;
	struct task_struct *next;

	if (!p->macrotick.linked || list_is_last(&p->macrotick.ready, &entity->ready))
		return;
	next = list_next_entry(p, macrotick.ready);
	p->macrotick.used = max(p->macrotick.used, next->macrotick.used);
	link_again(p);
}

/* Makes a new member a thread of its pool. Under its run queue's lock. */
void mt_pool_enter(struct task_struct *p, int policy, int priority)
{
	p->macrotick.lent = MAX_PRIO;
	p->macrotick.pooled = true;
	p->macrotick.own_policy = policy;
	p->macrotick.own_priority = priority;
}

/*
 * Returns the priority of a pool's thread while the pool is not dispatched,
 * which it also lends to the owner of a lock (macrotick_lent_prio()). Pools are
 * open to any program. No program must get a real-time priority when its
 * threads wait for each other. It is never the priority of the class.
 */
int mt_own_prio(struct task_struct *p)
{
	int priority = p->macrotick.own_priority;

	return priority ? max(MAX_RT_PRIO - 1 - priority, MACROTICK_PRIO + 1) : p->static_prio;
}

/*
 * Returns the policy that sched_setparam(2) keeps. With SCHED_FLAG_KEEP_PARAMS
 * the call has no parameters for the own policy.
 */
int mt_own_policy(struct task_struct *p, const struct sched_attr *attr, int policy)
{
	if (!READ_ONCE(p->macrotick.pooled) || attr->sched_flags & SCHED_FLAG_KEEP_PARAMS)
		return policy;
	return READ_ONCE(p->macrotick.own_policy);
}

/* Nice values also count outside the windows. The scheduler records those of the fair class. */
void mt_weigh(struct task_struct *p)
{
	unsigned long weight = scale_load(sched_prio_to_weight[p->static_prio - MAX_RT_PRIO]);

	if (p->macrotick.own_policy != SCHED_IDLE && p->se.load.weight != weight)
		set_load_weight(p, true);
}

static void note_policy(struct task_struct *p, int policy, const struct sched_attr *attr)
{
	p->macrotick.own_policy = policy;
	p->macrotick.own_priority = attr->sched_priority;
	if (fair_policy(policy))
		p->static_prio = NICE_TO_PRIO(attr->sched_nice);
}

/*
 * Hook of __sched_setscheduler(), for a policy that user space sets on a thread
 * in the class. For a thread of a pool, the kernel only remembers it.
 */
bool __macrotick_keeps(struct task_struct *p, const struct sched_attr *attr)
{
	struct macrotick_task *m = &p->macrotick;
	/* Negative: the policy stays (sched_setparam(2), SCHED_FLAG_KEEP_POLICY). */
	bool stays = (int)attr->sched_policy < 0;
	int policy = stays ? m->own_policy : attr->sched_policy;

	if (!m->pooled || macrotick_policy(policy) ||
	    (stays && attr->sched_flags & SCHED_FLAG_KEEP_PARAMS))
		return false;
	/* Another call changed the policy first; this call counts as if it had come before. */
	if (rt_policy(policy) != (attr->sched_priority != 0))
		return true;
	note_policy(p, policy, attr);
	if (!stays)
		p->sched_reset_on_fork = !!(attr->sched_flags & SCHED_FLAG_RESET_ON_FORK);
	if (m->linked)
		link_again(p);
	mt_resched(task_rq(p), mt_cpu_of(task_rq(p)));
	return true;
}

/* Returns the nearest group on the way up that names an entity, or NULL. */
static struct task_group *named_group(struct task_group *tg)
{
	while (tg && !READ_ONCE(tg->macrotick_entity[0]))
		tg = tg->parent;
	return tg;
}

static struct task_group *group_of(struct task_struct *p)
{
	return css_tg(task_css(p, cpu_cgrp_id));
}

/*
 * Copies the name of the entity that the caller's group names. Returns false if
 * there is none. If the name changes meanwhile, the thread is poked again.
 */
static bool name_of_group(char *name)
{
	const struct task_group *tg;

	guard(rcu)();
	tg = named_group(group_of(current));
	if (!tg)
		return false;
	guard(raw_spinlock_irqsave)(&mt_table_lock);
	strscpy(name, tg->macrotick_entity, MACROTICK_NAME_LEN);
	return true;
}

/* Returns the pool that the caller's group names, with a reference, or NULL. */
static struct macrotick_served *wanted_pool(void)
{
	struct macrotick_served *entity = NULL;
	char name[MACROTICK_NAME_LEN];
	struct macrotick_table *table;
	const struct mt_slot *slot;

	if (!name_of_group(name))
		return NULL;
	table = mt_latest_table();
	if (!table)
		return NULL;
	slot = mt_find_slot(table, name);
	if (slot && slot->entity->pool) {
		entity = slot->entity;
		mt_entity_get(entity);
	}
	mt_table_put(table);
	return entity;
}

static void join(const char *name)
{
	int err;

	current->macrotick.grouped = true;	/* before it may be frozen: mt_poke() needs it */
	err = mt_bind(current, name);
	if (!err)
		return;
	current->macrotick.grouped = false;
	if (err == -EAGAIN)
		mt_poke(current);	/* its affinity changed meanwhile */
	else if (err != -ENOENT && err != -EBUSY)
		pr_info_ratelimited("macrotick: %s[%d] cannot enter pool %s: %d\n",
				    current->comm, task_pid_nr(current), name, err);
}

/* Runs on the way back to user space, or at the end of the thread. */
static void follow_group(struct callback_head *work)
{
	struct macrotick_served *wanted;

	/* Any later change pokes the thread again. */
	xchg(&current->macrotick.poked, false);
	if (current->flags & PF_EXITING)
		return;
	if (current->macrotick.pooled || mt_ds_may_serve(current->policy))
		mt_refresh(current);
	wanted = wanted_pool();
	if (current->macrotick.grouped && current->macrotick.entity != wanted)
		mt_unbind(current);
	if (!wanted)
		return;
	if (!current->macrotick.entity)
		join(wanted->name);
	mt_entity_put(wanted);
}

/* Makes a thread look at its group. Under any lock. Kernel threads do not follow groups. */
void mt_poke(struct task_struct *p)
{
	if (p->flags & PF_KTHREAD || xchg(&p->macrotick.poked, true))
		return;
	init_task_work(&p->macrotick.look, follow_group);
	if (task_work_add(p, &p->macrotick.look, MT_TASK_WORK_NOTIFY))
		WRITE_ONCE(p->macrotick.poked, false);
}

/* Hook of the cpu controller: a child starts in a group, which may not be its parent's. */
void macrotick_group_fork(struct task_struct *p)
{
	if (!static_branch_unlikely(&macrotick_installed))
		return;
	guard(rcu)();
	if (p->macrotick.grouped || named_group(group_of(p)))
		mt_poke(p);
}

/* Hook of cpu_cgroup_attach(). */
void macrotick_group_attach(struct cgroup_taskset *tset)
{
	struct cgroup_subsys_state *css;
	struct task_struct *p;

	mt_ds_attach(tset);
	if (!static_branch_unlikely(&macrotick_installed))
		return;
	cgroup_taskset_for_each(p, css, tset) {
		if (p->macrotick.grouped || named_group(css_tg(css)))
			mt_poke(p);
	}
}

static void poke_threads(struct cgroup_subsys_state *css)
{
	struct css_task_iter it;
	struct task_struct *p;

	css_task_iter_start(css, 0, &it);
	while ((p = css_task_iter_next(&it)))
		mt_poke(p);
	css_task_iter_end(&it);
}

/* Pokes the threads of a group and of the groups below it. */
static void poke_subtree(struct cgroup_subsys_state *top)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css_for_each_descendant_pre(css, top) {
		if (!css_tryget_online(css))
			continue;
		rcu_read_unlock();
		poke_threads(css);
		rcu_read_lock();
		css_put(css);
	}
	rcu_read_unlock();
}

/* A table was installed: groups may name its pools. */
void mt_poke_groups(void)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css_for_each_descendant_pre(css, &root_task_group.css) {
		if (!READ_ONCE(css_tg(css)->macrotick_entity[0]) || !css_tryget_online(css))
			continue;
		rcu_read_unlock();
		poke_subtree(css);
		rcu_read_lock();
		css_put(css);
	}
	rcu_read_unlock();
}

static int entity_show(struct seq_file *file, void *unused)
{
	char name[MACROTICK_NAME_LEN];

	scoped_guard(raw_spinlock_irqsave, &mt_table_lock)
		strscpy(name, css_tg(seq_css(file))->macrotick_entity);
	seq_printf(file, "%s\n", name);
	return 0;
}

static ssize_t entity_write(struct kernfs_open_file *of, char *buf, size_t length, loff_t offset)
{
	struct task_group *tg = css_tg(of_css(of));
	char *name = strstrip(buf);

	/* The writer of the file may not be the process that opened it. */
	if (!capable(CAP_SYS_NICE) || !file_ns_capable(of->file, &init_user_ns, CAP_SYS_NICE))
		return -EPERM;
	if (macrotick_policy(current->policy))
		return -EDEADLK;
	if (strlen(name) >= MACROTICK_NAME_LEN)
		return -ENAMETOOLONG;
	scoped_guard(raw_spinlock_irqsave, &mt_table_lock)
		strscpy_pad(tg->macrotick_entity, name);
	poke_subtree(of_css(of));
	return length;
}

static struct cftype mt_group_files[] = {
	{
		.name		= "tt.entity",
		.flags		= CFTYPE_NOT_ON_ROOT,
		.seq_show	= entity_show,
		.write		= entity_write,
	},
	{ }	/* terminate */
};

static int __init mt_pool_init(void)
{
	return cgroup_add_dfl_cftypes(&cpu_cgrp_subsys, mt_group_files);
}
subsys_initcall(mt_pool_init);
