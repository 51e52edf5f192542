/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A library for LD_PRELOAD that makes QEMU's main loop and its virtual CPUs take turns. turns.rs
 * builds it.
 *
 * When all virtual CPUs are halted, the main loop advances the clock to the next timer
 * (icount_start_warp_timer()). But a virtual CPU is halted slightly before it adds the guest's last
 * instructions to the clock: helper_hlt() comes before icount_process_data(). Its thread does not
 * hold QEMU's big lock between them. A main loop that wakes up there advances a clock that is
 * behind. The addition follows, and the timer is late by as much.
 *
 * So the main loop waits until the thread of the virtual CPUs waits, too. That thread has then done
 * its addition. It cannot go on before the main loop wakes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The name that QEMU gives to the thread, with -name debug-threads=on. */
#define CPU_THREAD "ALL CPUs/TCG"
/* After this time the main loop goes on beside a guest that never idles: it may have orders for it. */
static const struct timespec PATIENCE = { .tv_nsec = 100000000 };

static int (*next_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*next_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*next_signal)(pthread_cond_t *);
static int (*next_broadcast)(pthread_cond_t *);

/* The condition on which the thread of the virtual CPUs waits. */
static _Atomic(pthread_cond_t *) halted;
/* Whether it waits there, and nothing has woken it since. */
static _Atomic int waits;

__attribute__((constructor)) static void find(void)
{
	next_ppoll = dlsym(RTLD_NEXT, "ppoll");
	next_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
	next_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
	next_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
	/* Programs that QEMU starts do not need it. */
	unsetenv("LD_PRELOAD");
}

static int is_cpu_thread(void)
{
	static _Thread_local int known = -1;
	char name[16];

	if (known < 0) {
		prctl(PR_GET_NAME, name);
		known = !strcmp(name, CPU_THREAD);
	}
	return known;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	int error;

	if (!is_cpu_thread())
		return next_wait(condition, lock);
	/* It holds the big lock until it waits, so that the main loop cannot go on too early. */
	atomic_store(&halted, condition);
	atomic_store(&waits, 1);
	syscall(SYS_futex, &waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	error = next_wait(condition, lock);
	atomic_store(&waits, 0);
	return error;
}

static void wake(pthread_cond_t *condition)
{
	if (condition == atomic_load(&halted))
		atomic_store(&waits, 0);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	wake(condition);
	return next_signal(condition);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	wake(condition);
	return next_broadcast(condition);
}

/* The main loop waits for events here, without the big lock. */
EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	int ready = next_ppoll(files, count, timeout, mask), error = errno;

	if (syscall(SYS_gettid) == getpid() && atomic_load(&halted) && !atomic_load(&waits))
		syscall(SYS_futex, &waits, FUTEX_WAIT_PRIVATE, 0, &PATIENCE, NULL, 0);
	errno = error;
	return ready;
}
