/* Two periodic threads: one computes, and one also waits inside its jobs. They know nothing of Macrotick. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_S 1000000000L

static long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static void compute(long ns)
{
	long end = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void run(long period, long work, long wait)
{
	unsigned int random = 1;

	for (long next = now(CLOCK_MONOTONIC);; next += period) {
		struct timespec at = { next / NS_PER_S, next % NS_PER_S };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		random = random * 1664525 + 1013904223;
		compute(work + work * (random >> 24) / 1024);
		if (wait) {
			struct timespec pause = { 0, wait };

			nanosleep(&pause, NULL);
			compute(work);
		}
	}
}

static void *camera(void *unused)
{
	prctl(PR_SET_NAME, "camera");
	run(33333333, 2000000, 3000000);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, camera, NULL);
	prctl(PR_SET_NAME, "control");
	run(5000000, 300000, 0);
}
