// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads golden schedules.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../kselftest.h"
#include "schedule.h"

static const char * const verbs[] = {
	"wait", "yield", "spin", "until", "from", "read", "write", "hog", "end"
};

static void __noreturn malformed(const char *line)
{
	ksft_exit_fail_msg("cannot read: %s\n", line);
}

static int entity_of(struct golden_case *c, const char *name)
{
	int i;

	for (i = 0; i < c->nr_entities; i++) {
		if (!strcmp(c->entities[i].name, name))
			return i;
	}
	if (i == MAX)
		malformed(name);
	snprintf(c->entities[i].name, MACROTICK_NAME_LEN, "%s", name);
	c->nr_entities++;
	return i;
}

static void add_window(struct golden_case *c, struct macrotick_window w, double begin, double end)
{
	if (c->nr_windows == MAX)
		malformed("too many windows");
	w.offset_ns = begin * UNIT_NS;
	w.length_ns = (uint64_t)(end * UNIT_NS) - w.offset_ns;
	c->windows[c->nr_windows++] = w;
	if (w.cpu >= c->nr_cpus)
		c->nr_cpus = w.cpu + 1;
}

static void decode_step(struct step *step, char *text, const char *line)
{
	char *word = strtok(text, " "), *number;

	for (step->verb = WAIT; word && strcmp(word, verbs[step->verb]); step->verb++) {
		if (step->verb == END)
			malformed(line);
	}
	while (word && (number = strtok(NULL, ", ")) && step->nr < MAX)
		step->cells[step->nr++] = atof(number);
	if (!word || step->nr < (step->verb >= SPIN && step->verb <= FROM))
		malformed(line);
}

static void decode_thread(struct golden_case *c, char *line)
{
	char copy[256], policy[16], *steps, *step, *on;
	struct thread *t = &c->threads[c->nr_threads];
	int end = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	steps = strchr(line, ':');
	if (!steps || c->nr_threads++ == MAX)
		malformed(copy);
	*steps++ = 0;
	t->cpu = -1;
	on = strstr(line, " on ");
	if (on) {
		t->cpu = atoi(on + 4);
		*on = 0;
		if (t->cpu >= c->nr_cpus)
			c->nr_cpus = t->cpu + 1;
	}
	if (sscanf(line, "thread %c %15s %n", &t->name, policy, &end) != 2)
		malformed(copy);
	line += end;
	t->priority = strcmp(policy, "fifo") ? 0 : atoi(line);
	if (!strcmp(policy, "tt") && sscanf(line, "%31s", t->entity) == 1)
		t->policy = SCHED_TT;
	else if (t->priority > 0)
		t->policy = SCHED_FIFO;
	else if (!strcmp(policy, "deadline") &&
		 sscanf(line, "%lf/%lf", &t->runtime, &t->period) == 2)
		t->policy = SCHED_DEADLINE;
	else if (strcmp(policy, "other"))
		malformed(copy);
	while ((step = strsep(&steps, ";")) && t->nr_steps < MAX)
		decode_step(&t->steps[t->nr_steps++], step, copy);
}

/* Reads a range such as 2..5. scanf() would take the first dot as part of the number. */
static void decode_range(const char *range, double *begin, double *end)
{
	const char *dots = strstr(range, "..");

	if (!dots)
		malformed(range);
	*begin = strtod(range, NULL);
	*end = strtod(dots + 2, NULL);
}

static void decode_line(struct golden_case *c, char *line)
{
	char name[MACROTICK_NAME_LEN], range[32], flags[8];
	struct macrotick_window w = { 0 };
	struct clock_step *step = &c->steps[c->nr_steps];
	double begin, end, bound;

	if (sscanf(line, "cycle %d x %d", &c->cycle, &c->cycles) == 2) {
		if (c->cycle * c->cycles > MAX_CELLS)
			malformed(line);
	} else if (sscanf(line, "window %31s cpu %u %31s %7s", name, &w.cpu, range, flags) == 4) {
		decode_range(range, &begin, &end);
		w.entity = entity_of(c, name);
		w.flags = (strchr(flags, 'A') ? MACROTICK_WINDOW_ACTIVATE : 0) |
			(strchr(flags, 'D') ? MACROTICK_WINDOW_DEADLINE : 0);
		add_window(c, w, begin, end);
	} else if (sscanf(line, "sync cpu %u %31s bound %lf", &w.cpu, range, &bound) == 3) {
		decode_range(range, &begin, &end);
		w.flags = MACROTICK_WINDOW_SYNC;
		w.bound_ns = bound * UNIT_NS;
		c->synced = true;
		add_window(c, w, begin, end);
	} else if (sscanf(line, "step %lf at %lf", &step->by, &step->at) == 2) {
		if (++c->nr_steps == MAX)
			malformed(line);
	} else if (sscanf(line, "pool %31s", name) == 1) {
		c->entities[entity_of(c, name)].flags |= MACROTICK_ENTITY_POOL;
	} else if (sscanf(line, "migrate %31s", name) == 1) {
		c->entities[entity_of(c, name)].flags |= MACROTICK_ENTITY_MIGRATE;
	} else if (!strncmp(line, "thread ", 7)) {
		decode_thread(c, line);
	} else {
		malformed(line);
	}
}

static int compare_windows(const void *a, const void *b)
{
	const struct macrotick_window *v = a, *w = b;

	if (v->cpu != w->cpu)
		return v->cpu < w->cpu ? -1 : 1;
	return v->offset_ns < w->offset_ns ? -1 : v->offset_ns > w->offset_ns;
}

char *decode(struct golden_case *c, const char *path)
{
	static char text[16384];
	char *next = text, *line;
	FILE *file = fopen(path, "r");
	size_t length;

	if (!file)
		ksft_exit_fail_perror(path);
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = 0;
	memset(c, 0, sizeof(*c));
	while ((line = strsep(&next, "\n")) && strcmp(line, "---")) {
		line[strcspn(line, "#")] = 0;
		line += strspn(line, " ");
		if (*line)
			decode_line(c, line);
	}
	if (!next || !c->cycle)
		malformed(path);
	qsort(c->windows, c->nr_windows, sizeof(c->windows[0]), compare_windows);
	return next;
}
