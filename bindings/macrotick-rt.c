/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libmacrotick-rt.so, a library to preload. A program that asks for SCHED_FIFO
 * or SCHED_RR gets SCHED_DS, the budget of its control group. When it reads its
 * policy, it gets its own request. The model is the rt-lib of Barletta et al.
 * (ECRTS 2022, section 4.4), which wraps the same calls at link time; see
 * docs/reference/group-files.md.
 *
 *	LD_PRELOAD=libmacrotick-rt.so cyclictest -p 80
 *	MACROTICK_RT=fifo	without a budget: the program's own request
 *
 * The calls that ask the kernel, syscall(2) included, use no libc function
 * except syscall(2). Their only state is a word of the calling thread. So
 * signal handlers may call them, and a process after fork(2). The library does
 * not see what libc does inside, without a call of its own functions by name:
 * posix_spawn(3), threads of timer_create(2), pthread_setattr_default_np(3).
 *
 *	cc -O2 -shared -fPIC -I kernel/overlay/include/uapi \
 *		-o libmacrotick-rt.so bindings/macrotick-rt.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/macrotick.h>

#define EXPORT __attribute__((visibility("default")))
/* A preloaded library is mapped at the start, so this needs no allocation. */
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK	0x40000000
#endif

/* The first members of the kernel's struct sched_attr, which libc may lack. */
struct attr_head {
	unsigned int size;
	unsigned int policy;
};

#define SCHED_ATTR_SIZE_VER0	48

static long (*real_syscall)(long number, ...);
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*real_set)(pthread_t, int, const struct sched_param *);
static int (*real_get)(pthread_t, int *, struct sched_param *);

/* The policy that the calling thread asked for, SCHED_FIFO or SCHED_RR. */
PER_THREAD int asked;

/* MACROTICK_RT=fifo */
static bool without_budget;

static void *libc_function(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort();
	return found;
}

/* Our constructor calls it, but constructors of other libraries may be first. */
static void find_libc(void)
{
	const char *fallback;

	if (__atomic_load_n(&real_syscall, __ATOMIC_ACQUIRE))
		return;
	fallback = getenv("MACROTICK_RT");
	without_budget = fallback && !strcmp(fallback, "fifo");
	real_create = libc_function("pthread_create");
	real_set = libc_function("pthread_setschedparam");
	real_get = libc_function("pthread_getschedparam");
	__atomic_store_n(&real_syscall, libc_function("syscall"), __ATOMIC_RELEASE);
}

static __attribute__((constructor)) void begin(void)
{
	find_libc();
}

static bool is_realtime(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static int served(int policy)
{
	return SCHED_DS | (policy & SCHED_RESET_ON_FORK);
}

/* Keeps the policy that a thread asked for, after the kernel gave it SCHED_DS or another policy. */
static void note(bool own, int policy)
{
	if (own)
		asked = policy & ~SCHED_RESET_ON_FORK;
}

/*
 * Returns SCHED_FIFO or SCHED_RR in place of SCHED_DS. For other threads it returns SCHED_FIFO: the
 * difference is only the order among equal priorities.
 */
static int told(bool own, int policy)
{
	if ((policy & ~SCHED_RESET_ON_FORK) != SCHED_DS)
		return policy;
	return (own && asked == SCHED_RR ? SCHED_RR : SCHED_FIFO) | (policy & SCHED_RESET_ON_FORK);
}

/* Prints once, because no program expects this errno. */
static void say(const char *text)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		real_syscall(SYS_write, STDERR_FILENO, text, strlen(text));
}

#define REFUSED	"libmacrotick-rt: SCHED_FIFO and SCHED_RR are refused: "
#define OTHERWISE "; MACROTICK_RT=fifo allows them, without any bound\n"

/*
 * Whether the program gets its own request after an error of SCHED_DS. The error
 * must mean that the control group has no budget, or the kernel no such policy.
 * Without MACROTICK_RT=fifo this function prints the reason instead.
 */
static bool falls_back(int err)
{
	bool no_policy = err == EINVAL && real_syscall(SYS_sched_get_priority_max, SCHED_DS) < 0;

	if (err != ENOTCONN && !no_policy)
		return false;
	if (!without_budget)
		say(no_policy ? REFUSED "this kernel has no SCHED_DS" OTHERWISE
			      : REFUSED "the control group has no budget (cpu.ds.budget)" OTHERWISE);
	errno = err;
	return without_budget;
}

static bool is_own(long tid)
{
	return !tid || tid == real_syscall(SYS_gettid);
}

/* Sets errno, as syscall(2) does. */
static long set_scheduler(long tid, int policy, const struct sched_param *param)
{
	long result;

	if (!is_realtime(policy))
		return real_syscall(SYS_sched_setscheduler, tid, policy, param);
	result = real_syscall(SYS_sched_setscheduler, tid, served(policy), param);
	if (!result)
		note(is_own(tid), policy);
	else if (falls_back(errno))
		result = real_syscall(SYS_sched_setscheduler, tid, policy, param);
	return result;
}

static long get_scheduler(long tid)
{
	long policy = real_syscall(SYS_sched_getscheduler, tid);

	return policy < 0 ? policy : told(is_own(tid), policy);
}

/* Does not write the program's structure: another thread may use it, too. */
static long set_attr(long tid, const struct attr_head *attr, unsigned int flags)
{
	unsigned char copy[256];
	long result;
	int policy;

	/* The kernel refuses wrong requests. It takes a size of 0 as that of the first version. */
	if (!attr || attr->size > sizeof(copy) || !is_realtime(attr->policy))
		return real_syscall(SYS_sched_setattr, tid, attr, flags);
	policy = attr->policy;
	memcpy(copy, attr, attr->size ? attr->size : SCHED_ATTR_SIZE_VER0);
	((struct attr_head *)copy)->policy = SCHED_DS;
	result = real_syscall(SYS_sched_setattr, tid, copy, flags);
	if (!result)
		note(is_own(tid), policy);
	else if (falls_back(errno))
		result = real_syscall(SYS_sched_setattr, tid, attr, flags);
	return result;
}

static long get_attr(long tid, struct attr_head *attr, unsigned int size, unsigned int flags)
{
	long result = real_syscall(SYS_sched_getattr, tid, attr, size, flags);

	if (!result)
		attr->policy = told(is_own(tid), attr->policy);
	return result;
}

EXPORT int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param)
{
	find_libc();
	return set_scheduler(tid, policy, param);
}

EXPORT int sched_getscheduler(pid_t tid)
{
	find_libc();
	return get_scheduler(tid);
}

/* glibc has these two since 2.41, and declares them like this. */
struct sched_attr;

EXPORT int sched_setattr(pid_t tid, struct sched_attr *attr, unsigned int flags)
{
	find_libc();
	return set_attr(tid, (void *)attr, flags);
}

EXPORT int sched_getattr(pid_t tid, struct sched_attr *attr, unsigned int size, unsigned int flags)
{
	find_libc();
	return get_attr(tid, (void *)attr, size, flags);
}

/* Programs call by number if libc lacks a call: rt-app, chrt, cyclictest. */
EXPORT long syscall(long number, ...)
{
	long word[6];
	va_list words;

	va_start(words, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(words, long);
	va_end(words);
	find_libc();
	switch (number) {
	case SYS_sched_setscheduler:
		return set_scheduler((pid_t)word[0], word[1], (const void *)word[2]);
	case SYS_sched_getscheduler:
		return get_scheduler((pid_t)word[0]);
	case SYS_sched_setattr:
		return set_attr((pid_t)word[0], (const void *)word[1], word[2]);
	case SYS_sched_getattr:
		return get_attr((pid_t)word[0], (void *)word[1], word[2], word[3]);
	default:
		return real_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
	}
}

/*
 * libc keeps SCHED_DS as the thread's policy. It uses this policy again when it
 * raises the owner of a mutex with PTHREAD_PRIO_PROTECT.
 */
EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	int err;

	find_libc();
	if (!is_realtime(policy))
		return real_set(thread, policy, param);
	err = real_set(thread, served(policy), param);
	if (!err)
		note(pthread_equal(thread, pthread_self()), policy);
	else if (falls_back(err))
		err = real_set(thread, policy, param);
	return err;
}

EXPORT int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *param)
{
	int err;

	find_libc();
	err = real_get(thread, policy, param);
	if (!err)
		*policy = told(pthread_equal(thread, pthread_self()), *policy);
	return err;
}

/* A new thread waits here until it has its policy. */
struct gate {
	enum { SHUT, OPEN, CLOSED_DOWN } state;
	int policy;
	bool has_mask;
	sigset_t mask;
	void *(*start)(void *);
	void *argument;
};

static void *pass(void *argument)
{
	struct gate *shared = argument, gate;
	int state;

	while ((state = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE)) == SHUT)
		real_syscall(SYS_futex, &shared->state, FUTEX_WAIT_PRIVATE, SHUT, NULL, NULL, 0);
	gate = *shared;
	free(shared);
	if (state == CLOSED_DOWN)
		return NULL;
	note(true, gate.policy);
	if (gate.has_mask)
		pthread_sigmask(SIG_SETMASK, &gate.mask, NULL);
	return gate.start(gate.argument);
}

/* The new thread may free the gate before the wake-up; then this wakes no thread. */
static void open_gate(struct gate *gate, int state)
{
	__atomic_store_n(&gate->state, state, __ATOMIC_RELEASE);
	real_syscall(SYS_futex, &gate->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Creates a thread with its creator's policy, which waits at the gate with all signals blocked. */
static int create_at(struct gate *gate, pthread_t *thread, const pthread_attr_t *attr)
{
	/* A shallow copy: pointers in it refer to the program's data, which is only read. */
	pthread_attr_t inherits = *attr;
	sigset_t all;
	int err;

	pthread_attr_setinheritsched(&inherits, PTHREAD_INHERIT_SCHED);
	gate->has_mask = pthread_attr_getsigmask_np(attr, &gate->mask) == PTHREAD_ATTR_NO_SIGMASK_NP;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, gate->has_mask ? &gate->mask : &all);
	err = real_create(thread, &inherits, pass, gate);
	pthread_sigmask(SIG_SETMASK, gate->has_mask ? &gate->mask : &all, NULL);
	return err;
}

/* Joins a thread that the program does not know. pthread_create(3) is no cancellation point, but pthread_join(3) is. */
static void bury(pthread_t thread, const pthread_attr_t *attr)
{
	int state, detached;

	pthread_attr_getdetachstate(attr, &detached);
	if (detached != PTHREAD_CREATE_JOINABLE)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(thread, NULL);
	pthread_setcancelstate(state, &state);
}

/* The thread starts without its policy: libc would set it without our function. */
static int create_served(pthread_t *thread, const pthread_attr_t *attr, struct gate *gate,
			 const struct sched_param *param)
{
	pthread_t created;
	int err = create_at(gate, &created, attr);

	if (err) {
		free(gate);
		return err;
	}
	err = pthread_setschedparam(created, gate->policy, param);
	if (!err)
		*thread = created;
	open_gate(gate, err ? CLOSED_DOWN : OPEN);
	if (err)
		bury(created, attr);
	return err;
}

/* Whether these attributes give a thread a real-time policy of its own, and which. */
static bool wants_realtime(const pthread_attr_t *attr, int *policy, struct sched_param *param)
{
	int inherits;

	return !pthread_attr_getinheritsched(attr, &inherits) && inherits == PTHREAD_EXPLICIT_SCHED &&
	       !pthread_attr_getschedpolicy(attr, policy) && is_realtime(*policy) &&
	       !pthread_attr_getschedparam(attr, param);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	struct sched_param param;
	struct gate *gate;
	int policy;

	find_libc();
	if (!attr || !wants_realtime(attr, &policy, &param))
		return real_create(thread, attr, start, argument);
	gate = malloc(sizeof(*gate));
	if (!gate)
		return EAGAIN;
	*gate = (struct gate){ .policy = policy, .start = start, .argument = argument };
	return create_served(thread, attr, gate, &param);
}
