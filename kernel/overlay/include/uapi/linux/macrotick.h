/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Macrotick: time-triggered scheduling.
 *
 * A table is installed for the whole host, started, stopped and removed
 * through /dev/macrotick. It names entities; threads are bound to them and
 * run under SCHED_TT in the windows of their entity.
 *
 * Every argument is a structure that begins with its own size, as in
 * sched_setattr(2) and openat2(2): a smaller structure is extended with
 * zeroes, a larger one is accepted as long as what the kernel does not know
 * is zero (-E2BIG otherwise). Reserved fields and unknown flags must be zero.
 *
 * All times are nanoseconds, all instants are on the clock of the table, except
 * for a job's nominal instant, which is on CLOCK_MONOTONIC.
 */
#ifndef _UAPI_LINUX_MACROTICK_H
#define _UAPI_LINUX_MACROTICK_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Scheduling policies for sched_setattr(2). Numbers well above the stock ones
 * leave room for those of later kernels. For SCHED_TT the thread must have been
 * bound. SCHED_DS has priorities, as SCHED_FIFO does, which count within the
 * control group; the group, or one above it, must have a budget (cpu.ds.budget).
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

/* What a window or a server serves: an ordered set of threads. */
struct macrotick_entity {
	char	name[MACROTICK_NAME_LEN];	/* unique, NUL-terminated, not empty */
	__u32	flags;
	__u32	max_misses;	/* in a row, after which the entity is stopped; 0: never */
	__u64	slice_ns;	/* of a pool with RR or PRIORITY; 0: MACROTICK_SLICE_NS */
};

/*
 * The threads of a stopped entity go on under SCHED_OTHER, and a wait blocks,
 * as if the table had stopped, until a thread is bound to it.
 *
 * What becomes of a thread whose job is a miss, at most one of these: it gets
 * SIGXCPU, or its process SIGKILL. Otherwise it resumes in its next window.
 */
#define MACROTICK_ENTITY_MISS_SIGNAL	(1U << 0)
#define MACROTICK_ENTITY_MISS_KILL	(1U << 1)

/*
 * A pool: threads that know nothing of jobs share its windows, which have no
 * flags. They come with their control group (cpu.tt.entity), or are bound.
 * Of their own policy remains the order among them, and what they return to:
 * sched_setscheduler(2) changes it, sched_setaffinity(2) takes note.
 */
#define MACROTICK_ENTITY_POOL		(1U << 2)
/* One of these at most; otherwise FIFO. In turns, weighted by nice values. */
#define MACROTICK_ENTITY_RR		(1U << 3)
/* By the priorities of SCHED_FIFO and SCHED_RR; all but the former in turns. */
#define MACROTICK_ENTITY_PRIORITY	(1U << 4)
/* Outside its windows the pool runs under its threads' own policies. */
#define MACROTICK_ENTITY_SLACK		(1U << 5)

/*
 * The entity may have windows on several CPUs, no two of them at the same time
 * (leads included): its threads move to the CPU of the window that opens. Not
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
 * A sync window, of a table on CLOCK_TAI only: it serves nobody and may be
 * longer or shorter by its bound, so that what follows keeps to the clock. It
 * has no other flag. Every CPU with windows has the same ones.
 */
#define MACROTICK_WINDOW_SYNC		(1U << 2)

/* The interval [offset, offset + length) of every cycle. */
struct macrotick_window {
	__u64	offset_ns;
	__u64	length_ns;
	__u32	cpu;
	__u32	entity;		/* index into the entities; zero with SYNC */
	__u32	flags;
	__u32	bound_ns;	/* with SYNC; it leaves MACROTICK_MIN_WINDOW_NS. Else zero */
};

/* Why a table was refused. The call fails with -EINVAL, or -EBUSY, -ENOMEM. */
enum macrotick_error {
	MACROTICK_ERR_NONE = 0,
	MACROTICK_ERR_HEADER,		/* flags, reserved fields or counts */
	MACROTICK_ERR_CLOCK,		/* a clock that tables cannot run on */
	MACROTICK_ERR_CYCLE,		/* zero or too long */
	MACROTICK_ERR_ENTITY_NAME,	/* index: empty or not terminated */
	MACROTICK_ERR_ENTITY_TWICE,	/* index, other: same name */
	MACROTICK_ERR_ENTITY_FLAGS,	/* index */
	MACROTICK_ERR_ENTITY_IDLE,	/* index: no window serves it */
	MACROTICK_ERR_WINDOW_FLAGS,	/* index */
	MACROTICK_ERR_WINDOW_CPU,	/* index: no such CPU, or not online */
	MACROTICK_ERR_WINDOW_ENTITY,	/* index: no such entity */
	MACROTICK_ERR_WINDOW_LENGTH,	/* index: shorter than the minimum */
	MACROTICK_ERR_WINDOW_RANGE,	/* index: reaches beyond the cycle */
	MACROTICK_ERR_WINDOW_ORDER,	/* index, other: not sorted by CPU and offset */
	MACROTICK_ERR_WINDOW_OVERLAP,	/* index, other */
	MACROTICK_ERR_WINDOW_MIGRATES,	/* index, other: one entity on two CPUs, without MIGRATE */
	MACROTICK_ERR_CAPACITY,		/* index: first window of the CPU that is too full */
	MACROTICK_ERR_INSTALLED,	/* -EBUSY: a table is installed already */
	MACROTICK_ERR_LEAD,		/* longer than the maximum */
	MACROTICK_ERR_WINDOW_LEAD,	/* index, other: less than the lead between them */
	MACROTICK_ERR_SWAP_CPU,		/* -EBUSY: index: has threads, was on other CPUs as other */
	MACROTICK_ERR_ENTITY_SLICE,	/* index: not a pool in turns, or out of range */
	MACROTICK_ERR_WINDOW_POOL,	/* index: flags, but the entity is a pool */
	/* -EBUSY: index: has threads; a pool, or slack, in one table only */
	MACROTICK_ERR_SWAP_POOL,
	MACROTICK_ERR_WINDOW_SYNC,	/* index: SYNC with an entity, another flag or clock */
	MACROTICK_ERR_SYNC_BOUND,	/* index: zero, or leaves less than the minimum */
	/* index, other: no SYNC window of the first CPU's, or none at all */
	MACROTICK_ERR_SYNC_CPU,
	MACROTICK_ERR_SWAP_CLOCK,	/* -EBUSY: the running table is on another clock */
	MACROTICK_ERR_BANDWIDTH,	/* -EBUSY: index: first of its CPU; other: see below */
	/* index begins too early: one entity with MIGRATE is still in other */
	MACROTICK_ERR_WINDOW_PARALLEL,
	MACROTICK_ERR_BUDGETS,		/* -EBUSY: index: first of its CPU; other: see below */
};

/*
 * With MACROTICK_ERR_BANDWIDTH, SCHED_DEADLINE has admitted tasks for
 * error_other per mille of one CPU, in all, on CPUs of which those of the
 * window is one: more than the table leaves them. Tasks are likewise admitted
 * only for what an installed table leaves.
 *
 * With MACROTICK_ERR_BUDGETS, the budgets of control groups are error_other per
 * mille of the window's CPU: with the windows more than MACROTICK_CAP_PERMILLE.
 */

/*
 * The table takes the place of the installed one (-ENOENT without one). Where
 * that runs, all CPUs change tables at one instant, the next boundary of its
 * cycle: the new table's epoch, written to swap_ns. Until it is over another
 * swap is refused, and stopping the table calls it off. Entities whose names
 * both tables have keep their threads, counters and job numbers; a job that
 * began before has no deadline in the new table. The threads of entities that
 * the new table does not have are unbound.
 */
#define MACROTICK_INSTALL_SWAP		(1U << 0)

/*
 * Installs a table: decoded and checked as a whole, then committed. It does
 * not run before it is started. Windows are sorted by CPU, then by offset.
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
	/* Filled in on failure: */
	__u32	error;		/* enum macrotick_error */
	__u32	error_index;
	__u32	error_other;
	__u32	error_reserved;
	/*
	 * The lead: windows with ACTIVATE open so much earlier, and the released
	 * thread is held in the kernel until the nominal instant. No window may
	 * be open on the CPU meanwhile.
	 */
	__u64	lead_ns;
	__u64	swap_ns;	/* out: see MACROTICK_INSTALL_SWAP; zero if it is done */
};

/*
 * A table on CLOCK_TAI is dispatched by CLOCK_MONOTONIC, at a fixed offset
 * between the two. Whoever sets the clock changes that: each SYNC window makes
 * good as much of the difference, modulo the cycle, as its bound allows, on all
 * CPUs alike. Between a swap's call and its instant none does.
 */

/*
 * Starts the installed table on all its CPUs at one instant. An epoch in the
 * past is wound forward by whole cycles; the epoch in force is written back.
 * One that lies further ahead than the longest cycle is refused (-EINVAL).
 */
struct macrotick_start {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u64	epoch_ns;	/* in: the wish; out: the start of cycle 0 */
};

enum macrotick_state {
	MACROTICK_STATE_EMPTY = 0,	/* no table */
	MACROTICK_STATE_STOPPED,	/* installed, not running */
	MACROTICK_STATE_RUNNING,
};

/*
 * Reads the table back. With the capacities zero it only tells the counts.
 * -ENOSPC where a capacity is not zero and too small.
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
	/* Out, of a running table on CLOCK_TAI; else zero: */
	__s64	offset_ns;	/* of the table's grid: CLOCK_TAI - CLOCK_MONOTONIC */
	__s64	error_ns;	/* still to be made good; more than zero: by stretching */
	__u64	stretched_ns;	/* by SYNC windows since the start, altogether */
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
	__u64	lost;		/* activations lost: an older one was still pending */
	__u64	skipped;	/* windows passed over by a late interrupt */
	__u64	preemptions;	/* threads preempted at a window's end */
	__u64	runtime_ns;	/* processor time received under SCHED_TT */
	__u64	held_ns;	/* the part of it in which jobs were held */
	__u64	late;		/* jobs that the lead was too short for */
	__u64	late_max_ns;	/* longest time from a nominal instant to its interrupt */
	__u64	never_ran;	/* misses with a job that had not begun */
	__u32	misses_in_row;
	__u32	stopped;	/* 1: after max_misses, until a thread is bound */
};

/*
 * Counts the misses of an entity, or of all, on an eventfd: it is signalled
 * after one or more of them. It replaces the one set before.
 */
#define MACROTICK_ALL_ENTITIES	(~0U)
struct macrotick_notify {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u32	entity;		/* index, or MACROTICK_ALL_ENTITIES */
	__s32	eventfd;	/* -1: none any longer */
};

/*
 * Makes a thread a member of an entity. It keeps its policy until it waits, or
 * until sched_setattr(2). Its children under SCHED_TT become members, too.
 *
 * A pool serves it at once.
 *
 * -ENOENT: no table, or no such entity; -EBUSY: bound already, or a pool and
 * SCHED_DEADLINE; -ESRCH: no such thread, or it exits; -EINVAL: a kernel thread
 * and no pool, or its affinity is not the entity's CPU alone, or a cpuset
 * without that CPU; -ENOSPC: the entity has MACROTICK_MAX_THREADS, or with
 * MIGRATE MACROTICK_MAX_MIGRATING.
 */
struct macrotick_bind {
	__u32	size;
	__u32	flags;		/* must be zero */
	__s32	pidfd;		/* of a process's first thread, or PIDFD_THREAD; -1: the caller */
	__u32	reserved;
	char	name[MACROTICK_NAME_LEN];
};

/* Ends a thread's membership; it continues under SCHED_OTHER. */
struct macrotick_unbind {
	__u32	size;
	__u32	flags;		/* must be zero */
	__s32	pidfd;		/* -1: the caller */
	__u32	reserved;
};

/*
 * Completes the caller's job and waits for the next one. The caller enters
 * SCHED_TT with its first wait. While no table runs it blocks until one does.
 *
 * -ENOTCONN: not bound; -EINVAL: in a pool; -ESHUTDOWN: the table was removed;
 * -EINTR: a signal was handled that came before the wait began or while no
 * table runs. A wait for a job of a running table ends with that job, when
 * handlers run, or with a fatal signal.
 */
struct macrotick_wait {
	__u32	size;
	__u32	flags;		/* must be zero */
	__u64	job;		/* out: number of the activation since the epoch */
	__u64	nominal_ns;	/* out: its nominal instant, always on CLOCK_MONOTONIC */
	__u64	lost;		/* out: activations lost since the last wait */
};

/*
 * The size travels in the structure, not in the number, so that structures
 * can grow. Install, start, stop, remove, notify, bind and unbind need
 * CAP_SYS_NICE; a bound thread may always wait. A thread under SCHED_TT must
 * not start, stop or remove the table (-EDEADLK): it would freeze itself
 * half-way.
 */
#define MACROTICK_IOC(nr)	_IOC(_IOC_READ | _IOC_WRITE, 0xBE, nr, 0)
#define MACROTICK_IOC_INSTALL	MACROTICK_IOC(0x00)	/* struct macrotick_install */
#define MACROTICK_IOC_START	MACROTICK_IOC(0x01)	/* struct macrotick_start */
#define MACROTICK_IOC_STOP	MACROTICK_IOC(0x02)	/* no argument */
#define MACROTICK_IOC_REMOVE	MACROTICK_IOC(0x03)	/* no argument */
#define MACROTICK_IOC_GET	MACROTICK_IOC(0x04)	/* struct macrotick_get */
#define MACROTICK_IOC_STATS	MACROTICK_IOC(0x05)	/* struct macrotick_entity_stats */
#define MACROTICK_IOC_NOTIFY	MACROTICK_IOC(0x06)	/* struct macrotick_notify */
#define MACROTICK_IOC_BIND	MACROTICK_IOC(0x10)	/* struct macrotick_bind */
#define MACROTICK_IOC_UNBIND	MACROTICK_IOC(0x11)	/* struct macrotick_unbind */
#define MACROTICK_IOC_WAIT	MACROTICK_IOC(0x12)	/* struct macrotick_wait */

#endif /* _UAPI_LINUX_MACROTICK_H */
