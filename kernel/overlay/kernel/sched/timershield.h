/* SPDX-License-Identifier: GPL-2.0-only */
/* TimerShield: the scheduler's hooks, which report the running task. Included by sched.h. */
#ifndef _KERNEL_SCHED_TIMERSHIELD_H
#define _KERNEL_SCHED_TIMERSHIELD_H

#ifdef CONFIG_TIMERSHIELD

DECLARE_STATIC_KEY_FALSE(timershield_on);
DECLARE_STATIC_KEY_FALSE(macrotick_used);

/* Whether windows or servers may serve any thread. */
static inline bool timershield_is_served(void)
{
	return IS_ENABLED(CONFIG_MACROTICK) && static_branch_unlikely(&macrotick_used);
}

int macrotick_level(const struct task_struct *p);
int macrotick_running_level(unsigned int cpu);

void __timershield_run(struct task_struct *next);
void __timershield_expect(struct task_struct *next);
void __timershield_prio_changed(struct task_struct *p, bool running);
void __timershield_affinity_changed(struct task_struct *p);

/* Hook of __schedule(): @next has been picked, but may be the task that ran before. */
static inline void timershield_run(struct task_struct *next)
{
	if (static_branch_unlikely(&timershield_on))
		__timershield_run(next);
}

/* Hook of SCHED_TT and SCHED_DS: the CPU of @next is about to run it. */
static inline void timershield_expect(struct task_struct *next)
{
	if (static_branch_unlikely(&timershield_on))
		__timershield_expect(next);
}

static inline void timershield_prio_changed(struct task_struct *p, bool running)
{
	if (static_branch_unlikely(&timershield_on))
		__timershield_prio_changed(p, running);
}

static inline void timershield_affinity_changed(struct task_struct *p)
{
	if (static_branch_unlikely(&timershield_on))
		__timershield_affinity_changed(p);
}

static inline void timershield_fork(struct task_struct *p)
{
	p->timershield.base = NULL;
}

#else

static inline void timershield_run(struct task_struct *next) { }
static inline void timershield_expect(struct task_struct *next) { }
static inline void timershield_prio_changed(struct task_struct *p, bool running) { }
static inline void timershield_affinity_changed(struct task_struct *p) { }
static inline void timershield_fork(struct task_struct *p) { }

#endif

#endif /* _KERNEL_SCHED_TIMERSHIELD_H */
