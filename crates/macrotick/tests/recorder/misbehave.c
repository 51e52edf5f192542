/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A task that is on time, except for one job. The argument names what happens
 * in that job. It joins as "victim".
 */
#define _GNU_SOURCE
#include <macrotick.h>

#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BAD	20	/* the job that is late */
#define LONG	4000000	/* ns; longer than the deadline */

static pthread_mutex_t mutex;
static int channel[2], sockets[2];
static volatile int go;
static int frozen, file;
static pid_t other;
static pthread_t sleeper;

/* The time that this thread computed. */
static uint64_t used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t end = used() + ns;

	while (used() < end)
		;
}

static void nap(uint64_t ns)
{
	struct timespec t = { .tv_nsec = ns };

	while (nanosleep(&t, &t))
		;
}

/* Other threads and processes wait for the bad job here. */
static void await(void)
{
	while (!go)
		nap(100000);
}

static void *holds(void *work)
{
	pthread_mutex_lock(&mutex);
	go = -1;
	while (go != 1)
		nap(100000);
	if (work)
		compute(LONG);
	else
		nap(LONG);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *writes(void *none)
{
	await();
	nap(LONG);
	write(channel[1], "x", 1);
	return none;
}

static void *sends(void *none)
{
	await();
	nap(LONG);
	send(sockets[1], "x", 1, 0);
	return none;
}

static void *naps(void *none)
{
	await();
	nap(LONG);
	return none;
}

static pthread_t begin(const char *name, void *(*f)(void *), void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, f, argument);
	pthread_setname_np(thread, name);
	return thread;
}

static void continues(pid_t victim)
{
	nap(LONG);
	kill(victim, SIGCONT);
}

static void traces(pid_t victim)
{
	int status;

	while (waitpid(victim, &status, __WALL) == victim && WIFSTOPPED(status) && WSTOPSIG(status) != SIGUSR2)
		ptrace(PTRACE_CONT, victim, 0, 0);
	nap(LONG);
	ptrace(PTRACE_DETACH, victim, 0, 0);
}

static void thaws(pid_t victim)
{
	(void)victim;
	nap(LONG);
	write(frozen, "0", 1);
}

static void locks(pid_t victim)
{
	(void)victim;
	nap(LONG);
	flock(file, LOCK_UN);
}

static void ends(pid_t victim)
{
	(void)victim;
	nap(LONG);
}

/* A child that does something to this process, once it writes a byte. */
static void child(void (*f)(pid_t))
{
	pid_t parent = getpid();

	other = fork();
	if (other)
		return;
	char byte;

	prctl(PR_SET_NAME, "child");

	if (f == traces)
		ptrace(PTRACE_SEIZE, parent, 0, 0);
	if (f == locks) {
		/* A lock belongs to an open file. */
		file = open("/tmp/lock", O_RDWR | O_CREAT, 0600);
		flock(file, LOCK_EX);
	}
	if (f == traces)
		f(parent);
	read(channel[0], &byte, 1);
	f(parent);
	_exit(0);
}

static void misbehave(const char *how)
{
	char byte;

	go = 1;
	if (!strcmp(how, "compute"))
		compute(LONG);
	else if (!strcmp(how, "faults")) {
		char *m = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int i = 0; i < 8 << 20; i += 4096)
			m[i] = 1;
		munmap(m, 8 << 20);
	} else if (!strcmp(how, "sleep"))
		nap(LONG);
	else if (!strcmp(how, "pipe") || !strcmp(how, "forever"))
		read(channel[0], &byte, 1);
	else if (!strcmp(how, "mutex") || !strcmp(how, "pi-mutex") || !strcmp(how, "pi-sleep")) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	} else if (!strcmp(how, "stop")) {
		write(channel[1], "x", 1);
		raise(SIGSTOP);
	} else if (!strcmp(how, "trace"))
		raise(SIGUSR2);
	else if (!strcmp(how, "freeze")) {
		write(channel[1], "x", 1);
		write(frozen, "1", 1);
	} else if (!strcmp(how, "flock")) {
		write(channel[1], "x", 1);
		flock(file, LOCK_EX);
	} else if (!strcmp(how, "child")) {
		write(channel[1], "x", 1);
		waitpid(other, NULL, 0);
	} else if (!strcmp(how, "poll")) {
		struct pollfd none = { .fd = channel[0], .events = POLLIN };

		poll(&none, 1, 4);
	} else if (!strcmp(how, "socket"))
		recv(sockets[0], &byte, 1, 0);
	else if (!strcmp(how, "join"))
		pthread_join(sleeper, NULL);
	else if (!strcmp(how, "vfork")) {
		if (!vfork()) {
			nap(LONG);
			_exit(0);
		}
	} else if (!strcmp(how, "signal") || !strcmp(how, "timed")) {
		struct timespec t = { .tv_nsec = LONG };
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigtimedwait(&set, NULL, *how == 't' ? &t : NULL);
	} else if (!strcmp(how, "fork"))
		for (int i = 0; i < 10; i++)
			if (!fork())
				_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_mutexattr_t attributes;
	struct macrotick_job job;
	int err;

	pipe(channel);
	pthread_mutexattr_init(&attributes);
	if (!strncmp(how, "pi", 2))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &attributes);
	if (!strcmp(how, "pipe"))
		begin("writer", writes, NULL);
	if (!strcmp(how, "join"))
		sleeper = begin("sleeper", naps, NULL);
	if (!strcmp(how, "mutex") || !strcmp(how, "pi-sleep"))
		begin("holder", holds, NULL);
	if (!strcmp(how, "pi-mutex"))
		begin("holder", holds, &mutex);
	if (!strcmp(how, "socket")) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
		begin("sender", sends, NULL);
	}
	if (!strcmp(how, "stop"))
		child(continues);
	if (!strcmp(how, "flock")) {
		file = open("/tmp/lock", O_RDWR | O_CREAT, 0600);
		child(locks);
	}
	if (!strcmp(how, "child"))
		child(ends);
	if (!strcmp(how, "trace"))
		child(traces);
	if (!strcmp(how, "freeze")) {
		mkdir("/sys/fs/cgroup/frozen", 0700);
		frozen = open("/sys/fs/cgroup/frozen/cgroup.freeze", O_WRONLY);
		child(thaws);
		file = open("/sys/fs/cgroup/frozen/cgroup.procs", O_WRONLY);
		write(file, "0", 1);
		close(file);
	}
	while (strstr(how, "mutex") && !go)
		nap(100000);
	err = macrotick_join("victim");
	if (err < 0) {
		fprintf(stderr, "cannot join: %s\n", strerror(-err));
		return 1;
	}
	mlockall(MCL_CURRENT);
	if (strcmp(how, "faults"))
		mlockall(MCL_FUTURE);
	err = macrotick_ready();
	if (err < 0)
		return 1;
	for (int i = 0; (err = macrotick_wait(&job)) >= 0; i++) {
		compute(100000);
		if (i == BAD)
			misbehave(how);
	}
	return 0;
}
