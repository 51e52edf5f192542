/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The smallest task: counts its jobs and prints the greatest lateness.
 *
 *	minimal [JOBS]		leaves after JOBS jobs; default: at the end of the run
 */
#include <macrotick.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	unsigned long jobs = 0, limit = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	uint64_t lateness = 0;
	struct macrotick_job job;
	int err;

	err = macrotick_join(NULL);
	if (err < 0) {
		fprintf(stderr, "minimal: cannot join: %s\n", strerror(-err));
		return 1;
	}
	macrotick_ready();
	while ((!limit || jobs < limit) && macrotick_wait(&job) == 0) {
		if (job.start_ns - job.nominal_ns > lateness)
			lateness = job.start_ns - job.nominal_ns;
		jobs++;
	}
	macrotick_leave();
	printf("%lu jobs, at most %llu ns late\n", jobs, (unsigned long long)lateness);
	return 0;
}
