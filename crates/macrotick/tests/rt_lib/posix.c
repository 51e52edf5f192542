/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that knows only POSIX and SCHED_FIFO. For each way to ask for a policy it prints the policy that it reads,
 * and the kernel's policy, as POLICY/PRIORITY.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct attr {
	unsigned int size, policy;
	unsigned long long flags;
	int nice;
	unsigned int priority;
	unsigned long long runtime, deadline, period;
};

static void check(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, strerror(err));
		exit(1);
	}
}

/* Fields 40 and 41 of a thread's stat, which no preloaded library can change. */
static void kernel_says(pid_t tid, int *policy, int *priority)
{
	char path[64], text[1024] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		exit(2);
	fclose(file);
	sscanf(strrchr(text, ')') + 2,
	       "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
	       "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %d", priority, policy);
}

static void show(const char *what)
{
	int policy, priority, by_thread;
	struct sched_param param, of_thread;

	check(sched_getparam(0, &param), "sched_getparam");
	check(pthread_getschedparam(pthread_self(), &by_thread, &of_thread), "pthread_getschedparam");
	kernel_says(gettid(), &policy, &priority);
	printf("%s: told %d/%d and %d/%d, is %d/%d\n", what, sched_getscheduler(0), param.sched_priority, by_thread,
	       of_thread.sched_priority, policy, priority);
	fflush(stdout);
}

static pthread_barrier_t both;
static volatile int handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static void *created(void *what)
{
	show(what);
	raise(SIGUSR1);
	return NULL;
}

static void *changed(void *unused)
{
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	show("setschedparam of another");
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	show("setschedprio of another");
	return unused;
}

static pthread_attr_t attributes(int policy, int priority)
{
	struct sched_param param = { priority };
	pthread_attr_t attr;

	check(pthread_attr_init(&attr), "attr");
	check(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED), "inheritsched");
	check(pthread_attr_setschedpolicy(&attr, policy), "schedpolicy");
	check(pthread_attr_setschedparam(&attr, &param), "schedparam");
	return attr;
}

static void threads(void)
{
	pthread_attr_t fifo = attributes(SCHED_FIFO, 20), rr = attributes(SCHED_RR, 21), other = attributes(SCHED_OTHER, 0);
	struct sched_param param = { 22 };
	int policy;
	pthread_t thread;

	check(pthread_create(&thread, &fifo, created, "create FIFO"), "create");
	pthread_join(thread, NULL);
	check(pthread_create(&thread, &rr, created, "create RR"), "create");
	pthread_join(thread, NULL);
	check(pthread_create(&thread, &other, created, "create OTHER"), "create");
	pthread_join(thread, NULL);
	check(pthread_create(&thread, NULL, created, "create as its creator"), "create");
	pthread_join(thread, NULL);
	printf("signals handled in them: %d\n", handled);

	pthread_barrier_init(&both, NULL, 2);
	check(pthread_create(&thread, NULL, changed, NULL), "create");
	pthread_barrier_wait(&both);
	check(pthread_setschedparam(thread, SCHED_FIFO, &param), "setschedparam");
	check(pthread_getschedparam(thread, &policy, &param), "getschedparam");
	printf("of another: %d/%d\n", policy, param.sched_priority);
	fflush(stdout);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	check(pthread_setschedprio(thread, 23), "setschedprio");
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
}

static void detached(void)
{
	pthread_attr_t attr = attributes(SCHED_FIFO, 24);
	pthread_t thread;

	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	check(pthread_create(&thread, &attr, created, "create detached"), "create");
	usleep(10000);
}

static void by_number(void)
{
	struct attr attr = { .size = sizeof(attr), .policy = SCHED_FIFO, .priority = 30 }, read = { 0 };

	check(syscall(SYS_sched_setattr, 0, &attr, 0) ? errno : 0, "sched_setattr");
	show("sched_setattr FIFO");
	attr.policy = SCHED_RR;
	check(syscall(SYS_sched_setattr, 0, &attr, 0) ? errno : 0, "sched_setattr");
	check(syscall(SYS_sched_getattr, 0, &read, sizeof(read), 0) ? errno : 0, "sched_getattr");
	printf("sched_setattr RR: told %u/%u and %ld\n", read.policy, read.priority, syscall(SYS_sched_getscheduler, 0));
	fflush(stdout);
}

static void ceiling(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
	pthread_mutexattr_setprioceiling(&attr, 60);
	pthread_mutex_init(&mutex, &attr);
	check(pthread_mutex_lock(&mutex), "lock");
	show("under a ceiling");
	check(pthread_mutex_unlock(&mutex), "unlock");
	show("and after it");
}

static void forked(const char *what)
{
	pid_t child = fork();

	if (!child) {
		show(what);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void refused(const char *who)
{
	struct sched_param high = { 90 }, none = { 0 };
	pthread_attr_t attr = attributes(SCHED_FIFO, 90);
	pthread_t thread;
	int err = pthread_create(&thread, &attr, created, "a refused thread runs");

	printf("%s: create %s, setschedparam %s, ", who, strerrorname_np(err),
	       strerrorname_np(pthread_setschedparam(pthread_self(), SCHED_RR, &high)));
	err = sched_setscheduler(0, SCHED_FIFO, &high) ? errno : 0;
	printf("sched_setscheduler %s, ", strerrorname_np(err));
	err = sched_setscheduler(0, SCHED_FIFO, &none) ? errno : 0;
	printf("priority 0 %s\n", strerrorname_np(err));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sched_param param = { 50 };
	struct rlimit no = { 0, 0 };

	signal(SIGUSR1, handle);
	if (argc > 1) {
		refused(argv[1]);
		return 0;
	}
	show("at first");
	check(sched_setscheduler(0, SCHED_FIFO, &param) ? errno : 0, "sched_setscheduler");
	show("sched_setscheduler FIFO");
	threads();
	detached();
	forked("a child");
	param.sched_priority = 40;
	check(sched_setparam(0, &param) ? errno : 0, "sched_setparam");
	show("sched_setparam");
	check(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param), "setschedparam");
	ceiling();
	by_number();
	check(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) ? errno : 0, "reset on fork");
	show("reset on fork");
	forked("its child");
	param.sched_priority = 0;
	check(sched_setscheduler(0, SCHED_OTHER, &param) ? errno : 0, "SCHED_OTHER");
	show("SCHED_OTHER");
	setrlimit(RLIMIT_RTPRIO, &no);
	check(setuid(1000) ? errno : 0, "setuid");
	refused("without privilege");
	return 0;
}
