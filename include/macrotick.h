/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Macrotick: the application interface of a task.
 *
 * A task is one thread that runs one job after the other:
 *
 *	struct macrotick_job job;
 *
 *	if (macrotick_join("controller") < 0)
 *		return 1;
 *	initialise();			allocate, lock and touch memory, open sockets.
 *	macrotick_ready();		returns when the run begins.
 *	while (macrotick_wait(&job) == 0)
 *		control(&job);		one job
 *	macrotick_leave();
 *
 * Every call returns 0 or a negative errno value. All times are nanoseconds of
 * CLOCK_MONOTONIC. Only the thread that joined may call these functions. A
 * process has one task.
 *
 * The same program runs under every backend. The shared memory block that
 * `macrotick run` hands down states the backend that releases the jobs:
 *
 *	kernel	the scheduling class SCHED_TT, through /dev/macrotick
 *	user	the user-space dispatcher, by a futex
 *	sleep	the stock policies: absolute sleeps to the table's instants
 *
 * A job that is not complete at the end of its DEADLINE window is a miss. Under
 * the backend kernel the description (on-miss) decides what happens:
 *
 *	resume	the job goes on in the task's next window.
 *	signal	the same, and the thread that joined gets SIGXCPU: a handler runs
 *		when that window opens, before the job goes on.
 *	kill	the process gets SIGKILL.
 *	restart	as kill, and a new process starts. It has a block of its own.
 *		Its first job has the number of its activation, counted from
 *		the epoch.
 *
 * A program that `macrotick run` did not start joins the kernel's table by the
 * name of its entity. Then nothing is recorded.
 *
 * A task that exchanges Ethernet frames without the network stack includes
 * <macrotick-express.h>, which includes this header.
 *
 * Header-only; C11 and C++11. With -std=c11 include it first, or define
 * _GNU_SOURCE or _DEFAULT_SOURCE. It needs <linux/macrotick.h>. Languages that
 * cannot include it call the functions of bindings/macrotick.c.
 */
#ifndef MACROTICK_H
#define MACROTICK_H

#if !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <linux/macrotick.h>

/* The linkage of the calls; bindings/macrotick.c exports them as symbols. */
#ifndef MACROTICK_API
#define MACROTICK_API static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A job, as macrotick_wait() returns it. */
struct macrotick_job {
	uint64_t number;	/* activations of this task since the epoch, from 0 */
	uint64_t nominal_ns;	/* the instant of its ACTIVATE in the table */
	uint64_t start_ns;	/* when the wait returned; minus nominal_ns it is the lateness */
	uint64_t lost;		/* activations lost since the last wait (kernel backend) */
};

/*
 * The shared memory block: one per process that the runner starts. Both sides
 * use this layout; a change of the layout changes the version. A process may be
 * killed at any instant: a record is valid once `count` includes it, because
 * `count` is written last. The end of a record is a single store.
 *
 *	+--------+----------------------+----------------------+
 *	| header | nominal offsets (u64)| records              |
 *	+--------+----------------------+----------------------+
 *	0        offsets_at             records_at             size
 *
 * The runner writes all members above `run` before the process starts, except
 * the epoch: the store to `run` publishes it (release, acquire). The runner
 * also writes `run` and `taken`, the dispatcher `released`, and the task the
 * other members.
 *
 * The records are a ring: record number n has the place n % capacity. The task
 * writes a record only into a place that is free, and the runner frees places
 * by `taken`. A runner that takes no records leaves `taken` at zero.
 *
 * New members may follow the last one, up to `offsets_at`. A side that does not
 * know a member leaves it at zero.
 */
#define MACROTICK_ENV_SHM	"MACROTICK_SHM"		/* number of the inherited file descriptor */
#define MACROTICK_ENV_TASK	"MACROTICK_TASK"	/* the task's name */

#define MACROTICK_BLOCK_MAGIC	0x4b43544dU		/* "MTCK" */
#define MACROTICK_BLOCK_VERSION	1U

/* The mechanism that releases the jobs. */
#define MACROTICK_BACKEND_KERNEL	1U
#define MACROTICK_BACKEND_USER		2U
#define MACROTICK_BACKEND_SLEEP		3U

/* The state of the run, which the runner writes to `run`; a futex word. */
#define MACROTICK_RUN_STARTING	0U
#define MACROTICK_RUN_RUNNING	1U
#define MACROTICK_RUN_STOPPING	2U

/* The state of the task, which the task writes to `phase`. */
#define MACROTICK_PHASE_NONE	0U
#define MACROTICK_PHASE_JOINED	1U
#define MACROTICK_PHASE_READY	2U
#define MACROTICK_PHASE_WAITING	3U	/* it entered its first wait */
#define MACROTICK_PHASE_LEFT	4U

/* The records were full: jobs ran that left no record. */
#define MACROTICK_FLAG_FULL	(1U << 0)

/* The record of a job. An end of zero: the job is not complete. */
struct macrotick_record {
	uint64_t job;
	uint64_t nominal_ns;
	uint64_t start_ns;
	uint64_t end_ns;
};

struct macrotick_block {
	uint32_t magic;
	uint32_t version;
	uint64_t size;		/* of the whole block, in bytes */
	uint32_t backend;
	uint32_t clockid;	/* CLOCK_MONOTONIC */
	uint64_t cycle_ns;
	uint32_t nr_offsets;	/* activations per cycle */
	uint32_t offsets_at;	/* bytes from the block's start */
	uint32_t capacity;	/* records that fit */
	uint32_t records_at;	/* bytes from the block's start */
	uint64_t epoch_ns;
	uint32_t run;		/* futex: MACROTICK_RUN_* */
	uint32_t released;	/* futex: jobs released by the dispatcher, modulo 2^32 */
	uint32_t phase;		/* MACROTICK_PHASE_* */
	uint32_t tid;		/* the thread that joined */
	uint32_t flags;		/* MACROTICK_FLAG_* */
	uint32_t completed;	/* jobs completed, modulo 2^32; the dispatcher reads it */
	uint64_t count;		/* records started */
	uint64_t taken;		/* records that the runner has read: their places are free */
	uint64_t unrecorded;	/* jobs that left no record */
	int64_t lateness_ns;	/* of the latest job */
	int64_t worst_ns;	/* the largest lateness */
};

/* The one context of a program, common to all its source files. */
struct macrotick_context {
	int joined;
	int device;			/* /dev/macrotick, or -1 */
	struct macrotick_block *block;	/* NULL: not started by macrotick */
	const uint64_t *offsets;
	struct macrotick_record *records;
	struct macrotick_record *running;	/* the record of the running job, or NULL */
	int in_job;
	uint32_t index;			/* of the next activation in its cycle */
	uint64_t job;			/* number of the next activation */
	uint64_t cycle_start_ns;	/* of the next activation's cycle */
	char name[MACROTICK_NAME_LEN];	/* of the task and of its entity */
	uint32_t entity;		/* where it was found in the kernel's table */
};

extern struct macrotick_context macrotick_context_;
__attribute__((weak)) struct macrotick_context macrotick_context_;

static inline uint64_t macrotick_now_(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Not a private futex: the word is shared between processes. */
static inline long macrotick_futex_wait_(uint32_t *word, uint32_t value)
{
	return syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

/* Uses syscall(2), because the C libraries differ in the type of a request. */
static inline int macrotick_device_(int device, unsigned long request, void *argument)
{
	return syscall(SYS_ioctl, device, request, argument) < 0 ? -errno : 0;
}

static inline int macrotick_open_device_(struct macrotick_context *context)
{
	context->device = open(MACROTICK_DEVICE, O_RDWR | O_CLOEXEC);
	return context->device < 0 ? -errno : 0;
}

/* Fails if this version of the header does not support the block. */
static inline int macrotick_check_block_(const struct macrotick_block *block, uint64_t size)
{
	if (block->magic != MACROTICK_BLOCK_MAGIC || block->version != MACROTICK_BLOCK_VERSION)
		return -EPROTO;
	if (block->size > size || block->offsets_at % 8 || block->records_at % 8)
		return -EPROTO;
	if (block->offsets_at + (uint64_t)block->nr_offsets * sizeof(uint64_t) > block->size ||
	    block->records_at + (uint64_t)block->capacity * sizeof(struct macrotick_record) > block->size)
		return -EPROTO;
	if (block->backend < MACROTICK_BACKEND_KERNEL || block->backend > MACROTICK_BACKEND_SLEEP)
		return -EPROTO;
	return 0;
}

/* Maps the block, faults it in, and locks it if that is allowed. */
static inline int macrotick_map_block_(struct macrotick_context *context, const char *text)
{
	int fd = atoi(text), err;
	struct stat stat;
	void *at;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if ((uint64_t)stat.st_size < sizeof(struct macrotick_block))
		return -EPROTO;
	at = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	context->block = (struct macrotick_block *)at;
	err = macrotick_check_block_(context->block, (uint64_t)stat.st_size);
	if (err < 0) {
		munmap(at, (size_t)stat.st_size);
		context->block = NULL;
		return err;
	}
	(void)mlock(at, (size_t)context->block->size);
	context->offsets = (const uint64_t *)((char *)at + context->block->offsets_at);
	context->records = (struct macrotick_record *)((char *)at + context->block->records_at);
	return 0;
}

/* Joins the kernel's table by name, without a runner. */
static inline int macrotick_bind_(struct macrotick_context *context, const char *name)
{
	struct macrotick_bind bind;
	int err;

	if (!name || !*name || strlen(name) >= MACROTICK_NAME_LEN)
		return -EINVAL;
	err = macrotick_open_device_(context);
	if (err < 0)
		return err;
	memset(&bind, 0, sizeof(bind));
	bind.size = sizeof(bind);
	bind.pidfd = -1;
	strcpy(bind.name, name);
	err = macrotick_device_(context->device, MACROTICK_IOC_BIND, &bind);
	if (err < 0)
		close(context->device);
	return err;
}

/* Maps the runner's block, and opens the device if the backend needs it. */
static inline int macrotick_adopt_(struct macrotick_context *context, const char *shm, const char *name)
{
	const char *given = getenv(MACROTICK_ENV_TASK);
	int err;

	if (name && given && strcmp(name, given) != 0)
		return -EINVAL;
	err = macrotick_map_block_(context, shm);
	if (err < 0)
		return err;
	if (context->block->backend == MACROTICK_BACKEND_KERNEL && context->block->nr_offsets)
		err = macrotick_open_device_(context);
	if (err < 0) {
		munmap(context->block, (size_t)context->block->size);
		context->block = NULL;
		return err;
	}
	context->block->tid = (uint32_t)syscall(SYS_gettid);
	__atomic_store_n(&context->block->phase, MACROTICK_PHASE_JOINED, __ATOMIC_RELEASE);
	return 0;
}

static inline void macrotick_keep_name_(struct macrotick_context *context, const char *name)
{
	if (name && strlen(name) < MACROTICK_NAME_LEN)
		strcpy(context->name, name);
}

/*
 * Makes the calling thread the task `name`. With a runner, NULL takes the
 * runner's name. No call after this one allocates memory.
 *
 *	EALREADY	It joined before.
 *	EINVAL		No name, or a name other than the runner's.
 *	EPROTO		A runner of another version.
 *	ENOENT		No runner and no kernel class; or the table has no entity of
 *			that name.
 *	others		From open(2), mmap(2).
 */
MACROTICK_API int macrotick_join(const char *name)
{
	struct macrotick_context *context = &macrotick_context_;
	const char *shm = getenv(MACROTICK_ENV_SHM);
	int err;

	if (context->joined)
		return -EALREADY;
	memset(context, 0, sizeof(*context));
	context->device = -1;
	err = shm ? macrotick_adopt_(context, shm, name) : macrotick_bind_(context, name);
	if (err < 0)
		return err;
	macrotick_keep_name_(context, shm && !name ? getenv(MACROTICK_ENV_TASK) : name);
	(void)macrotick_now_();	/* finds the vDSO now, not in the first job */
	context->joined = 1;
	return 0;
}

/*
 * Reports that the task is initialised, and returns when the run begins.
 *
 *	ENOTCONN	The thread has not joined.
 *	ESHUTDOWN	The run ended before it began.
 */
MACROTICK_API int macrotick_ready(void)
{
	struct macrotick_context *context = &macrotick_context_;
	struct macrotick_block *block = context->block;
	uint32_t run;

	if (!context->joined)
		return -ENOTCONN;
	if (!block)
		return 0;
	__atomic_store_n(&block->phase, MACROTICK_PHASE_READY, __ATOMIC_RELEASE);
	while ((run = __atomic_load_n(&block->run, __ATOMIC_ACQUIRE)) == MACROTICK_RUN_STARTING)
		macrotick_futex_wait_(&block->run, MACROTICK_RUN_STARTING);
	context->cycle_start_ns = block->epoch_ns;
	return run == MACROTICK_RUN_RUNNING ? 0 : -ESHUTDOWN;
}

/* Ends the running job; returns the present time. */
static inline uint64_t macrotick_end_job_(struct macrotick_context *context)
{
	uint64_t now = macrotick_now_();

	if (!context->in_job)
		return now;
	context->in_job = 0;
	if (context->running)
		context->running->end_ns = now;
	if (context->block)
		__atomic_store_n(&context->block->completed, context->block->completed + 1, __ATOMIC_RELEASE);
	return now;
}

/* Publishes the lateness of a job that has just started. */
static inline void macrotick_tell_lateness_(struct macrotick_block *block, const struct macrotick_job *job)
{
	int64_t lateness = (int64_t)(job->start_ns - job->nominal_ns);

	__atomic_store_n(&block->lateness_ns, lateness, __ATOMIC_RELAXED);
	if (lateness > block->worst_ns)
		__atomic_store_n(&block->worst_ns, lateness, __ATOMIC_RELAXED);
}

/* Opens the record of a job that has just started. */
static inline void macrotick_begin_job_(struct macrotick_context *context, const struct macrotick_job *job)
{
	struct macrotick_block *block = context->block;

	context->in_job = 1;
	context->running = NULL;
	if (!block)
		return;
	macrotick_tell_lateness_(block, job);
	if (block->count - __atomic_load_n(&block->taken, __ATOMIC_ACQUIRE) >= block->capacity) {
		block->flags |= MACROTICK_FLAG_FULL;
		__atomic_store_n(&block->unrecorded, block->unrecorded + 1, __ATOMIC_RELAXED);
		return;
	}
	context->running = &context->records[block->count % block->capacity];
	context->running->job = job->number;
	context->running->nominal_ns = job->nominal_ns;
	context->running->start_ns = job->start_ns;
	context->running->end_ns = 0;
	__atomic_store_n(&block->count, block->count + 1, __ATOMIC_RELEASE);
}

/* Advances to the next activation in the table of nominal offsets. */
static inline void macrotick_advance_(struct macrotick_context *context)
{
	context->job++;
	if (++context->index < context->block->nr_offsets)
		return;
	context->index = 0;
	context->cycle_start_ns += context->block->cycle_ns;
}

static inline int macrotick_await_kernel_(struct macrotick_context *context, struct macrotick_job *job)
{
	struct macrotick_wait wait;
	int err;

	memset(&wait, 0, sizeof(wait));
	wait.size = sizeof(wait);
	err = macrotick_device_(context->device, MACROTICK_IOC_WAIT, &wait);
	job->start_ns = macrotick_now_();
	job->number = wait.job;
	job->nominal_ns = wait.nominal_ns;
	job->lost = wait.lost;
	return err;
}

static inline int macrotick_await_user_(struct macrotick_context *context, struct macrotick_job *job)
{
	struct macrotick_block *block = context->block;
	uint32_t taken = (uint32_t)context->job;
	int err = 0;

	while (__atomic_load_n(&block->released, __ATOMIC_ACQUIRE) == taken) {
		if (__atomic_load_n(&block->run, __ATOMIC_ACQUIRE) == MACROTICK_RUN_STOPPING)
			return -ESHUTDOWN;
		if (macrotick_futex_wait_(&block->released, taken) < 0 && errno == EINTR)
			err = -EINTR;
		if (err < 0)
			break;
	}
	/* Not the end of the job before: this job may have been released after it. */
	job->start_ns = macrotick_now_();
	return err;
}

static inline int macrotick_await_sleep_(struct macrotick_job *job)
{
	struct timespec until;
	int err;

	until.tv_sec = (time_t)(job->nominal_ns / 1000000000U);
	until.tv_nsec = (long)(job->nominal_ns % 1000000000U);
	err = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	job->start_ns = macrotick_now_();
	return -err;
}

/*
 * Waits for the next job of a runner's table. A job with a past nominal instant
 * starts at once: the task completes a backlog job by job.
 */
static inline int macrotick_await_table_(struct macrotick_context *context, struct macrotick_job *job, uint64_t now)
{
	struct macrotick_block *block = context->block;
	int err = 0;

	if (!block->nr_offsets)
		return -ENOTSUP;
	job->number = context->job;
	job->nominal_ns = context->cycle_start_ns + context->offsets[context->index];
	job->start_ns = now;
	job->lost = 0;
	if (block->backend == MACROTICK_BACKEND_USER)
		err = macrotick_await_user_(context, job);
	else if (job->nominal_ns > now)
		err = macrotick_await_sleep_(job);
	if (err == 0)
		macrotick_advance_(context);
	return err;
}

/*
 * When a table is removed, the kernel returns -ESHUTDOWN to a thread that
 * waits. A thread that runs a job at that time gets -ENOTCONN at its next wait.
 * For the task both mean the end.
 */
static inline int macrotick_end_of_wait_(int err)
{
	return err == -ENOTCONN ? -ESHUTDOWN : err;
}

/*
 * Completes the running job and waits for the next one. Its lateness is
 * job->start_ns - job->nominal_ns.
 *
 *	ENOTCONN	The thread has not joined.
 *	ESHUTDOWN	The run ended, or the table was removed.
 *	EINTR		A signal was handled. The next call waits for the same job.
 *
 * Under the backend kernel, EINTR is for a signal from before the wait. The
 * handler of a later signal runs when the next job starts, before this call
 * returns.
 */
#ifdef __cplusplus
/* The function has the name of the kernel's structure, as stat(2) has. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
MACROTICK_API int macrotick_wait(struct macrotick_job *job)
{
	struct macrotick_context *context = &macrotick_context_;
	uint64_t now;
	int err;

	if (!context->joined)
		return -ENOTCONN;
	now = macrotick_end_job_(context);
	if (context->block && context->block->phase != MACROTICK_PHASE_WAITING)
		__atomic_store_n(&context->block->phase, MACROTICK_PHASE_WAITING, __ATOMIC_RELEASE);
	if (context->device >= 0)
		err = macrotick_await_kernel_(context, job);
	else
		err = macrotick_await_table_(context, job, now);
	if (err < 0)
		return macrotick_end_of_wait_(err);
	if (context->block && __atomic_load_n(&context->block->run, __ATOMIC_RELAXED) == MACROTICK_RUN_STOPPING)
		return -ESHUTDOWN;
	macrotick_begin_job_(context, job);
	return 0;
}
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

static inline int macrotick_entity_stats_(const struct macrotick_context *context, uint32_t entity,
					  struct macrotick_entity_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->entity = entity;
	return macrotick_device_(context->device, MACROTICK_IOC_STATS, stats);
}

/*
 * Reads the kernel's counters of this task since the table was installed:
 * misses, lost activations, processor time and more. It completes no job. When
 * a job calls it, the misses include the job before.
 *
 *	ENOTCONN	The thread has not joined.
 *	ENOTSUP		The backend is not kernel: there are no counters.
 *	ENOENT		The table was removed, as at the end of a run.
 */
MACROTICK_API int macrotick_stats(struct macrotick_entity_stats *stats)
{
	struct macrotick_context *context = &macrotick_context_;
	uint32_t entity;
	int err;

	if (!context->joined)
		return -ENOTCONN;
	if (context->device < 0)
		return -ENOTSUP;
	err = macrotick_entity_stats_(context, context->entity, stats);
	if (err == 0 && strcmp(stats->name, context->name) == 0)
		return 0;
	/* The index is unknown before the first call, and wrong after a change of the table. */
	for (entity = 0; (err = macrotick_entity_stats_(context, entity, stats)) == 0; entity++) {
		if (strcmp(stats->name, context->name) == 0) {
			context->entity = entity;
			return 0;
		}
	}
	return err;
}

/*
 * Completes the running job and ends the membership. The thread continues under
 * its policy (kernel class: SCHED_OTHER).
 *
 *	ENOTCONN	The thread has not joined.
 */
MACROTICK_API int macrotick_leave(void)
{
	struct macrotick_context *context = &macrotick_context_;
	struct macrotick_unbind unbind;

	if (!context->joined)
		return -ENOTCONN;
	macrotick_end_job_(context);
	context->joined = 0;
	if (context->device >= 0) {
		memset(&unbind, 0, sizeof(unbind));
		unbind.size = sizeof(unbind);
		unbind.pidfd = -1;
		/* Can fail without CAP_SYS_NICE; then the membership ends with the thread. */
		(void)macrotick_device_(context->device, MACROTICK_IOC_UNBIND, &unbind);
		close(context->device);
	}
	if (context->block) {
		__atomic_store_n(&context->block->phase, MACROTICK_PHASE_LEFT, __ATOMIC_RELEASE);
		munmap(context->block, (size_t)context->block->size);
		context->block = NULL;
	}
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* MACROTICK_H */
