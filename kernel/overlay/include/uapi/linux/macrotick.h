/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Macrotick: time-triggered scheduling.
 *
 * A program installs a table for the whole host through /dev/macrotick, and
 * starts, stops and removes it. The table names entities. A thread that is
 * bound to an entity runs under SCHED_TT in the windows of the entity.
 *
 * Every argument is a structure that begins with its own size, as in
 * sched_setattr(2) and openat2(2). A smaller structure is extended with zeroes.
 * A larger structure is accepted if the part that the kernel does not know is
 * zero (otherwise -E2BIG). Reserved fields and unknown flags must be zero.
 *
 * All times are nanoseconds. Instants are on the clock of the table, except the
 * nominal instant of a job, which is on CLOCK_MONOTONIC.
 */
#ifndef _UAPI_LINUX_MACROTICK_H
#define _UAPI_LINUX_MACROTICK_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Scheduling policies for sched_setattr(2). The numbers are well above the
 * stock ones, to leave room for those of later kernels. SCHED_TT needs a bound
 * thread. SCHED_DS has priorities like SCHED_FIFO, which count within the
 * control group. The group, or one above it, must have a budget
 * (cpu.ds.budget).
 */
#define SCHED_TT		16
#define SCHED_DS		17

#define MACROTICK_DEVICE	"/dev/macrotick"

#define MACROTICK_NAME_LEN	32	/* with the terminating NUL */
#define MACROTICK_MAX_ENTITIES	4096
#define MACROTICK_MAX_WINDOWS	(1U << 20)
#define MACROTICK_MAX_THREADS	256	/* of one entity with jobs; children beyond are left out */
#define MACROTICK_MAX_MIGRATING	16	/* of one entity with windows on several CPUs, likewise */
#define MACROTICK_MIN_WINDOW_NS	1000ULL
#define MACROTICK_MAX_CYCLE_NS	3600000000000ULL	/* one hour */
#define MACROTICK_MAX_LEAD_NS	1000000ULL
#define MACROTICK_CAP_PERMILLE	950	/* of each CPU, for all windows and leads together */

/* The unit that a window serves: an ordered set of threads. */
struct macrotick_entity {
	char	name[MACROTICK_NAME_LEN];	/* unique, NUL-terminated, not empty */
	__u32	flags;
	__u32	max_misses;	/* in a row, after which the entity is stopped; 0: never */
	__u64	slice_ns;	/* of a pool with RR or PRIORITY; 0: MACROTICK_SLICE_NS */
};

/*
 * After max_misses misses in a row the kernel stops the entity. Its threads
 * continue under SCHED_OTHER, and a wait blocks, as if the table had stopped.
 * That ends when a thread is bound to the entity.
 *
 * At most one of these flags selects the reaction to a miss. The thread with
 * the missed job gets SIGXCPU, or its process gets SIGKILL. Without a flag, the
 * job resumes in the entity's next window.
 */
#define MACROTICK_ENTITY_MISS_SIGNAL	(1U << 0)
#define MACROTICK_ENTITY_MISS_KILL	(1U << 1)

/*
 * A pool: threads that do not know jobs share its windows, which have no flags.
 * The threads join with their control group (cpu.tt.entity), or are bound. The
 * own policy of a thread decides its place among them, and is in force again
 * when the thread leaves. sched_setscheduler(2) changes this policy.
 * sched_setaffinity(2) only records the mask.
 */
#define MACROTICK_ENTITY_POOL		(1U << 2)
/* At most one of these; without one, the pool is FIFO. RR: in turns, weighted by nice values. */
#define MACROTICK_ENTITY_RR		(1U << 3)
/*
 * By the priorities of SCHED_FIFO, SCHED_DS and SCHED_RR. Equals take turns,
 * except under SCHED_FIFO and SCHED_DS.
 */
#define MACROTICK_ENTITY_PRIORITY	(1U << 4)
/* Outside its windows, the threads of the pool run under their own policies. */
#define MACROTICK_ENTITY_SLACK		(1U << 5)

/*
 * The entity may have windows on several CPUs, no two of them at the same time
 * (leads included). Its threads move to the CPU of the window that opens. Not
 * for a pool. At most MACROTICK_MAX_MIGRATING threads.
 */
#define MACROTICK_ENTITY_MIGRATE	(1U << 6)

#define MACROTICK_SLICE_NS		1000000ULL
#define MACROTICK_MIN_SLICE_NS		10000ULL
#define MACROTICK_MAX_SLICE_NS		1000000000ULL

/* The window releases a job of its entity. */
#define MACROTICK_WINDOW_ACTIVATE	(1U << 0)
/* A job that is not complete at the end of the window is a miss. */
#define MACROTICK_WINDOW_DEADLINE	(1U << 1)

/*
 * A sync window, only in a table on CLOCK_TAI. It serves no thread. The kernel
 * makes it longer or shorter, by its bound at most, to keep the table on the
 * clock. It has no other flag. Every CPU with windows has the same sync
 * windows.
 */
#define MACROTICK_WINDOW_SYNC		(1U << 2)

/* The interval [offset, offset + length) of every cycle. */
struct macrotick_window {
	__u64	offset_ns;
	__u64	length_ns;
	__u32	cpu;
	__u32	entity;		/* index into the entities; zero with SYNC */
	__u32	flags;
	__u32	bound_ns;	/* with SYNC; it leaves MACROTICK_MIN_WINDOW_NS. Otherwise zero */
};

/* The reason for which a table was refused. The call fails with -EINVAL, -EBUSY or -ENOMEM. */
enum macrotick_error {
	MACROTICK_ERR_NONE = 0,
	MACROTICK_ERR_HEADER,		/* flags, reserved fields or counts */
	MACROTICK_ERR_CLOCK,		/* a clock on which tables cannot run */
	MACROTICK_ERR_CYCLE,		/* shorter than MACROTICK_MIN_WINDOW_NS, or too long */
	MACROTICK_ERR_ENTITY_NAME,	/* index: empty or not terminated */
	MACROTICK_ERR_ENTITY_TWICE,	/* index, other: same name */
	MACROTICK_ERR_ENTITY_FLAGS,	/* index */
	MACROTICK_ERR_ENTITY_IDLE,	/* index: no window serves it */
	MACROTICK_ERR_WINDOW_FLAGS,	/* index */
	/* index: no such CPU, or not online. -EBUSY: it went offline */
	MACROTICK_ERR_WINDOW_CPU,
	MACROTICK_ERR_WINDOW_ENTITY,	/* index: no such entity */
	MACROTICK_ERR_WINDOW_LENGTH,	/* index: shorter than the minimum */
	MACROTICK_ERR_WINDOW_RANGE,	/* index: reaches beyond the cycle */
	MACROTICK_ERR_WINDOW_ORDER,	/* index, other: not sorted by CPU and offset */
	MACROTICK_ERR_WINDOW_OVERLAP,	/* index, other */
	MACROTICK_ERR_WINDOW_MIGRATES,	/* index, other: one entity on two CPUs, without MIGRATE */
	MACROTICK_ERR_CAPACITY,		/* index: first window of the CPU that is too full */
	/* -EBUSY: a table is installed already, or a swap is in progress */
	MACROTICK_ERR_INSTALLED,
	MACROTICK_ERR_LEAD,		/* longer than the maximum */
	MACROTICK_ERR_WINDOW_LEAD,	/* index, other: less than the lead between them */
	/* -EBUSY: index: it has threads, and was on other CPUs as other */
	MACROTICK_ERR_SWAP_CPU,
	MACROTICK_ERR_ENTITY_SLICE,	/* index: not a pool in turns, or out of range */
	MACROTICK_ERR_WINDOW_POOL,	/* index: flags, but the entity is a pool */
	/* -EBUSY: index: it has threads, and is a pool, or has slack, in one table only */
	MACROTICK_ERR_SWAP_POOL,
	/* index: SYNC with an entity, another flag or another clock */
	MACROTICK_ERR_WINDOW_SYNC,
	MACROTICK_ERR_SYNC_BOUND,	/* index: zero, or leaves less than the minimum */
	/* index, other: differs from the first CPU's SYNC windows, or no SYNC window at all */
	MACROTICK_ERR_SYNC_CPU,
	MACROTICK_ERR_SWAP_CLOCK,	/* -EBUSY: the running table is on another clock */
	MACROTICK_ERR_BANDWIDTH,	/* -EBUSY: index: first of its CPU; other: see below */
	/* index begins too early: an entity with MIGRATE is in the window other */
	MACROTICK_ERR_WINDOW_PARALLEL,
	MACROTICK_ERR_BUDGETS,		/* -EBUSY: index: first of its CPU; other: see below */
};

/*
 * For MACROTICK_ERR_BANDWIDTH, error_other is the per mille of one CPU that
 * SCHED_DEADLINE has admitted in total, on CPUs that include the window's. The
 * table would leave less than that. While a table is installed, SCHED_DEADLINE
 * admits tasks only for the time that the table leaves.
 *
 * For MACROTICK_ERR_BUDGETS, error_other is the per mille of the window's CPU
 * that the budgets of control groups take. Together with the windows, that is
 * more than MACROTICK_CAP_PERMILLE.
 */

/*
 * The table replaces the installed one (-ENOENT without one; -EDEADLK for a
 * caller under SCHED_TT). If the old table runs, all CPUs change tables at one
 * instant, the next boundary of its cycle. This instant is the epoch of the new
 * table, which the call writes to swap_ns. Until then another swap is refused.
 * A stop of the table cancels the swap.
 *
 * Entities with the same name in both tables keep their threads, counters and
 * job numbers. A job that began before the swap has no deadline in the new
 * table. The threads of entities that the new table lacks are unbound.
 */
#define MACROTICK_INSTALL_SWAP		(1U << 0)

/*
 * Installs a table. The kernel decodes and checks the whole table before it
 * changes anything. The table does not run before it is started. Windows are
 * sorted by CPU, then by offset.
 */
struct macrotick_install {
	__u32	size;
	__u32	flags;		/* MACROTICK_INSTALL_SWAP or zero */
	__u32	clockid;	/* CLOCK_MONOTONIC or CLOCK_TAI */
	__u32	nr_entities;
	__u32	nr_windows;
	__u32	reserved;
	__u64	cycle_ns;
	__aligned_u64 entities;	/* struct macrotick_entity[nr_entities] */
	__aligned_u64 windows;	/* struct macrotick_window[nr_windows] */
	/* Set on failure: */
	__u32	error;		/* enum macrotick_error */
	__u32	error_index;
	__u32	error_other;
	__u32	error_reserved;
	/*
	 * The lead: windows with ACTIVATE open earlier by this time. The kernel
	 * holds the released thread until the nominal instant. No window may be
	 * open on the CPU meanwhile.
	 */
	__u64	lead_ns;
	__u64	swap_ns;	/* out: see MACROTICK_INSTALL_SWAP; zero if the swap is done */
};

/*
 * The kernel dispatches a table on CLOCK_TAI by CLOCK_MONOTONIC, at a fixed
 * offset between the two. A program that sets the clock changes the real
 * offset. Each SYNC window corrects as much of the difference, modulo the
 * cycle, as its bound allows, on all CPUs alike. Between the call of a swap and
 * its instant, no SYNC window corrects anything.
 */

/*
 * Starts the installed table on all its CPUs at one instant. The kernel moves
 * an epoch in the past forward by whole cycles, and writes back the epoch in
 * force. An epoch that lies further ahead than the longest cycle is refused
 * (-EINVAL).
 */
struct macrotick_start {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u64	epoch_ns;	/* in: the requested epoch; out: the start of cycle 0 */
};

enum macrotick_state {
	MACROTICK_STATE_EMPTY = 0,	/* no table */
	MACROTICK_STATE_STOPPED,	/* installed, not running */
	MACROTICK_STATE_RUNNING,
};

/*
 * Reads the table. With both capacities zero the call returns the counts only.
 * -ENOSPC: a capacity is too small and not zero.
 */
struct macrotick_get {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u32	state;		/* out: enum macrotick_state */
	__u32	clockid;	/* out */
	__u32	nr_entities;	/* in: capacity; out: count */
	__u32	nr_windows;	/* in: capacity; out: count */
	__u64	cycle_ns;	/* out */
	__u64	epoch_ns;	/* out; zero unless running */
	__aligned_u64 entities;
	__aligned_u64 windows;
	__u64	lead_ns;	/* out */
	/* Out, for a running table on CLOCK_TAI; otherwise zero: */
	__s64	offset_ns;	/* of the table's grid: CLOCK_TAI - CLOCK_MONOTONIC */
	__s64	error_ns;	/* remaining correction; positive: by stretching */
	__u64	stretched_ns;	/* by SYNC windows since the start, in total */
	__u64	shrunk_ns;
	__u64	corrections;	/* SYNC windows that stretched or shrank */
};

/* Counters since the table was installed. */
struct macrotick_entity_stats {
	__u32	size;
	__u32	entity;		/* in: index */
	char	name[MACROTICK_NAME_LEN];	/* out */
	__u32	cpu;		/* with MIGRATE: of its last window */
	__u32	nr_threads;
	__u64	activations;	/* jobs released while it had threads */
	__u64	completions;	/* jobs completed by waiting for the next */
	__u64	misses;		/* jobs incomplete at the end of a DEADLINE window */
	__u64	lost;		/* activations that came while an older one was pending */
	__u64	skipped;	/* windows that a late interrupt passed over */
	__u64	preemptions;	/* threads preempted at the end of a window */
	__u64	runtime_ns;	/* CPU time received under SCHED_TT */
	__u64	held_ns;	/* the part in which jobs were held */
	__u64	late;		/* jobs for which the lead was too short */
	__u64	late_max_ns;	/* longest time from a nominal instant to its interrupt */
	__u64	never_ran;	/* misses with a job that had not started */
	__u32	misses_in_row;
	__u32	stopped;	/* 1: after max_misses, until a thread is bound */
};

/*
 * Counts the misses of an entity, or of all, on an eventfd. The kernel signals
 * it after one or more misses. A new eventfd replaces the old one.
 */
#define MACROTICK_ALL_ENTITIES	(~0U)
struct macrotick_notify {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u32	entity;		/* index, or MACROTICK_ALL_ENTITIES */
	__s32	eventfd;	/* -1: clears it */
};

/*
 * Starts the flight recorder, for this file. Each possible CPU has a ring with
 * its latest events, in the order of CPUs. mmap(2) of the file from offset 0,
 * for reading only, has the rings one behind the other. The recorder ends when
 * the file is closed and no longer mapped.
 *
 *   -EPERM       without CAP_PERFMON; or the kernel is locked down (also -EPERM).
 *   -EINVAL      the number of events is not a power of two, is less than a page of
 *                them, or more than MACROTICK_MAX_EVENTS.
 *   -EBUSY       there is a recorder.
 *   -ENOMEM      no memory for the rings.
 *   -EOPNOTSUPP  the kernel has no trace points.
 */
#define MACROTICK_MAX_EVENTS	(1U << 17)
struct macrotick_recorder {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u32	nr_events;	/* of each ring */
	__u32	nr_rings;	/* out */
};

/* With the meaning of an event's object and data. */
enum macrotick_event_kind {
	MACROTICK_EVENT_SWITCH = 1,	/* next thread; its priority << 32 | state of this one */
	MACROTICK_EVENT_WAKES,		/* a thread; its priority << 32 */
	MACROTICK_EVENT_EXITS,		/* a thread */
	MACROTICK_EVENT_IRQ_BEGINS,	/* number of an interrupt */
	MACROTICK_EVENT_IRQ_ENDS,	/* the same */
	MACROTICK_EVENT_VECTOR_BEGINS,	/* vector of an interrupt of the CPU itself (x86) */
	MACROTICK_EVENT_VECTOR_ENDS,	/* the same */
	MACROTICK_EVENT_SOFTIRQ_BEGINS,	/* number of a softirq */
	MACROTICK_EVENT_SOFTIRQ_ENDS,	/* the same */
	MACROTICK_EVENT_LOCK_BEGINS,	/* flags (LCB_F_*); address of a lock */
	MACROTICK_EVENT_LOCK_ENDS,	/* 0 or an error; address of a lock */
	MACROTICK_EVENT_PAGE_FAULT,	/* error code (x86); address */
	MACROTICK_EVENT_WINDOW_BEGINS,	/* CPU; instant of the table */
	MACROTICK_EVENT_WINDOW_SKIPPED,	/* the same */
	MACROTICK_EVENT_MISSES,		/* the same; the instant is the deadline */
	MACROTICK_EVENT_JOB_BEGINS,	/* lower half of the job's number; its nominal instant */
	MACROTICK_EVENT_JOB_ENDS,	/* the same */
};

/*
 * An event of a ring. The kernel sets the sequence to 0, writes the event, and
 * then sets the sequence to its number on the CPU. A reader that finds the same
 * number, not 0, before and after its copy has the whole event. An interrupt's
 * event can have a greater number than an event that it interrupts, and an
 * earlier instant.
 */
struct macrotick_event {
	__u32	sequence;
	__u16	kind;		/* enum macrotick_event_kind */
	__u16	reserved;
	__u64	ns;		/* CLOCK_MONOTONIC */
	__u32	thread;		/* that the CPU was running */
	__u32	object;
	__u64	data;
	char	name[MACROTICK_NAME_LEN];	/* of a thread or entity; else undefined */
};

/*
 * Makes a thread a member of an entity. The thread keeps its policy until it
 * waits, or until sched_setattr(2). A pool serves it at once. Its children
 * under SCHED_TT become members, too.
 *
 *   -ENOENT  no table, or no such entity.
 *   -EBUSY   the thread is bound already, or is under SCHED_DEADLINE and the entity
 *            is a pool.
 *   -ESRCH   no such thread, or it exits.
 *   -EINVAL  a kernel thread, unless the entity is a pool and the thread's affinity is
 *            exactly its CPU; or a cpuset without the entity's CPU.
 *   -ENOSPC  the entity has MACROTICK_MAX_THREADS or, with MIGRATE,
 *            MACROTICK_MAX_MIGRATING threads.
 *   -EAGAIN  the affinity changed meanwhile; or the thread sleeps and fell asleep on
 *            another CPU.
 */
struct macrotick_bind {
	__u32	size;
	__u32	flags;		/* must be zero */
	__s32	pidfd;		/* of a process's first thread, or PIDFD_THREAD; -1: the caller */
	__u32	reserved;
	char	name[MACROTICK_NAME_LEN];
};

/* Ends a membership. The thread continues under SCHED_OTHER or, from a pool, its own policy. */
struct macrotick_unbind {
	__u32	size;
	__u32	flags;		/* must be zero */
	__s32	pidfd;		/* -1: the caller */
	__u32	reserved;
};

/*
 * Completes the caller's job and waits for the next one. The caller enters
 * SCHED_TT with its first wait. While no table runs, the call blocks until one
 * does.
 *
 *   -ENOTCONN   the caller is not bound.
 *   -EINVAL     it is in a pool.
 *   -ESHUTDOWN  the table was removed, or the caller was unbound.
 *   -EINTR      a signal was handled that came before the wait began or while no
 *               table runs.
 *
 * A wait for a job of a running table ends with that job, when signal handlers
 * run, or with a fatal signal.
 */
struct macrotick_wait {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u64	job;		/* out: number of the activation since the epoch */
	__u64	nominal_ns;	/* out: its nominal instant, on CLOCK_MONOTONIC */
	__u64	lost;		/* out: activations lost since the last wait */
};

/*
 * The size is in the structure, not in the number, because structures can grow.
 * Install, start, stop, remove, notify, bind and unbind need CAP_SYS_NICE. A
 * bound thread may always wait. A thread under SCHED_TT must not start, stop or
 * remove the table, or install one with MACROTICK_INSTALL_SWAP (-EDEADLK),
 * because it would freeze itself half-way.
 */
#define MACROTICK_IOC(nr)	_IOC(_IOC_READ | _IOC_WRITE, 0xBE, nr, 0)
#define MACROTICK_IOC_INSTALL	MACROTICK_IOC(0x00)	/* struct macrotick_install */
#define MACROTICK_IOC_START	MACROTICK_IOC(0x01)	/* struct macrotick_start */
#define MACROTICK_IOC_STOP	MACROTICK_IOC(0x02)	/* no argument */
#define MACROTICK_IOC_REMOVE	MACROTICK_IOC(0x03)	/* no argument */
#define MACROTICK_IOC_GET	MACROTICK_IOC(0x04)	/* struct macrotick_get */
#define MACROTICK_IOC_STATS	MACROTICK_IOC(0x05)	/* struct macrotick_entity_stats */
#define MACROTICK_IOC_NOTIFY	MACROTICK_IOC(0x06)	/* struct macrotick_notify */
#define MACROTICK_IOC_RECORD	MACROTICK_IOC(0x07)	/* struct macrotick_recorder */
#define MACROTICK_IOC_BIND	MACROTICK_IOC(0x10)	/* struct macrotick_bind */
#define MACROTICK_IOC_UNBIND	MACROTICK_IOC(0x11)	/* struct macrotick_unbind */
#define MACROTICK_IOC_WAIT	MACROTICK_IOC(0x12)	/* struct macrotick_wait */

#endif /* _UAPI_LINUX_MACROTICK_H */
