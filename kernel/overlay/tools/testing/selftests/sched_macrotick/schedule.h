/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The language of golden schedules.
 *
 * A file has a case, a line ---, and the expected result. # begins a comment.
 * Times are in cells of the timeline's grid, UNIT_NS each:
 *
 *   cycle 10 x 3             three cycles of ten cells.
 *   window E cpu 0 0..4 AD   a window of entity E, flags A(CTIVATE), D(EADLINE) or -.
 *   sync cpu 0 6..9 bound 1  a sync window; the table is on CLOCK_TAI.
 *   step -3 at 25            the clock is set back by three cells, 25 after the epoch.
 *   pool E                   E is a pool in the order FIFO; its windows have no flags.
 *   migrate E                E may have windows on several CPUs.
 *   thread a tt E: wait; spin 2,6      repeats for ever; 2 in the first round, 6 in all others.
 *   thread h other: hog                also: fifo PRIORITY, deadline RUNTIME/PERIOD; on CPU pins.
 *
 * The steps of a thread:
 *
 *   wait, yield  end a job.
 *   spin N       CPU time, 0.2 cells less, to end inside a cell.
 *   until N      sleeps; N counts from the epoch, and one cycle more in each round.
 *   from N       until N in the first round only.
 *   read, write  a pipe that all threads share.
 *   hog          runs for ever.
 *   end          sleeps for ever.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/macrotick.h>

#define UNIT_NS		100000ULL
#define MAX		16	/* the most of each thing in a case */
#define MAX_CELLS	512

enum verb { WAIT, YIELD, SPIN, UNTIL, FROM, READ, WRITE, HOG, END };

struct step {
	enum verb verb;
	double cells[MAX];	/* of spin by round; the last one for all further rounds */
	int nr;
};

struct thread {
	char name;
	int policy;
	char entity[MACROTICK_NAME_LEN];
	int priority;
	double runtime, period;
	int cpu;		/* or -1 */
	struct step steps[MAX];
	int nr_steps;
	pid_t pid;
};

struct clock_step {
	double by, at;
};

struct golden_case {
	int cycle, cycles;
	int nr_cpus;
	struct macrotick_entity entities[MAX];
	int nr_entities;
	struct macrotick_window windows[MAX];
	int nr_windows;
	bool synced;
	struct clock_step steps[MAX];
	int nr_steps;
	struct thread threads[MAX];
	int nr_threads;
};

/* Reads a file. Returns the expected text. An error ends the program. */
char *decode(struct golden_case *c, const char *path);

#endif
