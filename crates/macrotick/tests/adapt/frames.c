/*
 * A program with a period, as a player has: it computes, and sleeps until the next frame.
 *
 * frames PERIOD_US WORK_US JITTER_PERCENT FRAMES [WORK_US_LATER FROM_FRAME]
 *
 * At the end it prints the late frames, and the 99 % quantile of the frame time. A frame is shown at the end of its
 * period, or when it is done.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void compute(int64_t ns)
{
	int64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int round = 0; round < 200; round++)
			sink += round;
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	int64_t period = atoll(argv[1]) * 1000, work = atoll(argv[2]) * 1000;
	int jitter = atoi(argv[3]), frames = atoi(argv[4]);
	int64_t later = argc > 6 ? atoll(argv[5]) * 1000 : work;
	int from = argc > 6 ? atoi(argv[6]) : frames, late = 0;
	/* The search for the period is over after these frames. */
	int begin_at = frames / 4;
	int64_t *times = calloc(frames, sizeof(*times));
	int64_t begin = read_clock(CLOCK_MONOTONIC), before = 0;
	uint64_t random = 88172645463325252ULL;

	for (int frame = 0; frame < frames; frame++) {
		int64_t at = begin + frame * period, end;
		struct timespec until = { at / 1000000000, at % 1000000000 };
		int64_t time = frame < from ? work : later;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		compute(time + time * jitter / 100 * (int64_t)(random % 2001 - 1000) / 1000);
		end = read_clock(CLOCK_MONOTONIC);
		if (frame >= begin_at && end > at + period)
			late++;
		if (end < at + period)
			end = at + period;
		times[frame] = end - before;
		before = end;
	}
	int count = frames - begin_at;

	qsort(times + begin_at, count, sizeof(*times), compare);
	printf("late: %d\nframe time: %lld\n", late, (long long)times[begin_at + (count * 99 + 99) / 100 - 1] / 1000);
	return 0;
}
