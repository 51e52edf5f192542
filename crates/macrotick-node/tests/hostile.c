/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hostile task.
 *
 *	hostile FILE		Its third job never ends. Its child has its own session and never sleeps. It
 *				writes its process id to FILE.
 *	hostile FILE equal	The same with the runner's priority, for at most 20 s of CPU time.
 *	hostile leave		Leaves in its third job, but its process continues.
 *	hostile overwrite	Its third job overwrites the memory that it shares with the runner.
 *	hostile			Fails at the end of the run.
 */
#define _GNU_SOURCE
#include <macrotick.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void spin(void)
{
	for (volatile unsigned long turns = 0;;)
		turns++;
}

static void overwrite(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], access[8];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && strcmp(access, "rw-s") == 0)
			memset((void *)from, 0xff, to - from);
}

static void become_equal(void)
{
	const struct rlimit seconds = { 20, 20 };
	const struct sched_param highest = { .sched_priority = 99 };

	if (setrlimit(RLIMIT_CPU, &seconds) < 0 || sched_setscheduler(0, SCHED_FIFO, &highest) < 0)
		_exit(6);
}

static void leave_child(const char *path)
{
	FILE *file;

	if (fork() != 0)
		return;
	setsid();
	file = fopen(path, "w");
	if (file) {
		fprintf(file, "%d", (int)getpid());
		fclose(file);
	}
	spin();
}

int main(int argc, char **argv)
{
	struct macrotick_job job;

	if (argc > 3 || macrotick_join(NULL) < 0)
		return 1;
	macrotick_ready();
	if (argc == 2 && (strcmp(argv[1], "overwrite") == 0 || strcmp(argv[1], "leave") == 0)) {
		while (macrotick_wait(&job) == 0 && job.number < 2)
			continue;
		if (strcmp(argv[1], "leave") == 0)
			macrotick_leave();
		else
			overwrite();
		pause();
	}
	while (macrotick_wait(&job) == 0) {
		if (argc == 3 && job.number == 1)
			become_equal();
		if (argc > 1 && job.number == 1)
			leave_child(argv[1]);
		if (argc > 1 && job.number == 2)
			spin();
	}
	fputs("no more jobs\n", stderr);
	return 5;
}
