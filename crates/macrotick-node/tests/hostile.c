/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A task that does not let go of its CPU.
 *
 *	hostile FILE		its third job never ends; a child of a session of its own, whose number it
 *				writes to the file, never sleeps either
 *	hostile			fails when it is told that the run is over
 */
#define _GNU_SOURCE
#include <macrotick.h>

#include <stdio.h>

static void spin(void)
{
	for (volatile unsigned long turns = 0;;)
		turns++;
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

	if (argc > 2 || macrotick_join(NULL) < 0)
		return 1;
	macrotick_ready();
	while (macrotick_wait(&job) == 0) {
		if (argc == 2 && job.number == 1)
			leave_child(argv[1]);
		if (argc == 2 && job.number == 2)
			spin();
	}
	fputs("no more jobs\n", stderr);
	return 5;
}
