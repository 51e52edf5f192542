// SPDX-License-Identifier: GPL-2.0-only
/*
 * Golden schedules: compares the timeline of a small table and a few threads with
 * the expected one, exactly.
 *
 *   golden_schedules [FILE ...]	all files of golden/ without an argument
 *
 * schedule.h has the language of the files. The result of a schedule has a line
 *
 *   for each CPU: the thread that had most of each cell. A dot is the idle task,
 *       - is any other task, ? is no clear majority.
 *   for each thread: its jobs as number@instant, and -n if n were lost before.
 *   for each entity: its counters.
 *
 * Another MACROTICK_SEED in the environment makes the schedules begin at other
 * instants.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>

#include "../kselftest.h"
#include "schedule.h"

#define SCHED_FLAG_RESET	0x01	/* SCHED_FLAG_RESET_ON_FORK */
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define WRITE_ONCE(x, value)	__atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)
#define MAX_JOBS	64
#define MAX_SWITCHES	65536
#define SPARED		0.2	/* cells; twice this time still ends clearly inside a cell */
#define CLEAR_NS	(UNIT_NS * 11 / 20)
#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/sched_macrotick"

/* In memory that the threads share. */
struct board {
	uint64_t grid;		/* an instant before the first thread begins */
	uint64_t epoch;		/* on CLOCK_MONOTONIC, once it is known */
	struct log {
		int joined;	/* 1, or -errno */
		int nr;
		struct macrotick_wait jobs[MAX_JOBS];
	} logs[MAX];
};

struct switch_to {
	uint64_t at;
	int cpu;
	char thread;
};

static struct board *board;
static struct switch_to switches[MAX_SWITCHES];
static int device, channel[2];
static bool several_cpus;
static int order;	/* of this thread, in the case */

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static uint64_t now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static void sleep_until(uint64_t at)
{
	struct timespec time = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

/* An emulator that runs one CPU at a time changes to the next one at such an instruction. */
static void be_busy(void)
{
	if (several_cpus) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		asm volatile("yield");
#endif
	}
	asm volatile("" ::: "memory");
}

static void spin(uint64_t ns)
{
	uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 50; i++)
			be_busy();
	}
}

/* Calls sched_setattr(2). Only some C libraries have its structure. */
static int set_sched(int policy, int priority, uint64_t runtime, uint64_t period, uint64_t flags)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {
		.size = sizeof(attr), .policy = policy, .flags = flags, .priority = priority,
		.runtime = runtime, .deadline = period, .period = period,
	};

	return syscall(SYS_sched_setattr, 0, &attr, 0) ? -errno : 0;
}

/*
 * Threads
 */

/* Returns the next instant of a grid of cells. Threads look in their order, one after another. */
static uint64_t next_look(uint64_t phase)
{
	uint64_t passed = now() - board->grid;

	return board->grid + (passed / UNIT_NS + 1) * UNIT_NS + phase;
}

static uint64_t instant(double cells)
{
	return board->epoch + (int64_t)(cells * UNIT_NS);
}

/*
 * Waits until an instant after the epoch. A member begins before the epoch is
 * known. If the start freezes it between its look at the board and its sleep,
 * it must not sleep in its first window. It therefore computes the end of the
 * sleep before it looks. Members that are frozen wake up, and wait for their
 * first window, in the order of the case.
 */
static void wait_from(double cells)
{
	uint64_t next;

	for (;;) {
		next = next_look(order * (UNIT_NS / (4 * MAX)));
		if (READ_ONCE(board->epoch))
			break;
		sleep_until(next);
	}
	sleep_until(instant(cells));
}

static void wait_for_job(struct log *log)
{
	struct macrotick_wait wait = { .size = sizeof(wait) };

	if (ioctl(device, MACROTICK_IOC_WAIT, &wait))
		_exit(errno);
	if (log->nr < MAX_JOBS)
		log->jobs[log->nr++] = wait;
}

static void do_step(const struct step *step, int round, uint64_t cycle_ns, struct log *log)
{
	char byte = 0;

	switch (step->verb) {
	case WAIT:
		wait_for_job(log);
		break;
	case YIELD:
		sched_yield();
		break;
	case SPIN:
		spin((step->cells[round < step->nr ? round : step->nr - 1] - SPARED) * UNIT_NS);
		break;
	case UNTIL:
		sleep_until(instant(step->cells[0]) + round * cycle_ns);
		break;
	case FROM:
		if (!round)
			wait_from(step->cells[0]);
		break;
	case READ:
		if (read(channel[0], &byte, 1) != 1)
			_exit(1);
		break;
	case WRITE:
		if (write(channel[1], &byte, 1) != 1)
			_exit(1);
		break;
	case HOG:
		for (;;)
			be_busy();
	case END:
		for (;;)
			pause();
	}
}

/* Joins an entity or a policy. Takes page faults before, which take longer than most windows. */
static int join(const struct thread *t, struct log *log)
{
	struct macrotick_bind bind = { .size = sizeof(bind), .pidfd = -1 };
	int err = 0;

	mlockall(MCL_CURRENT);
	now();
	spin(1000);
	if (t->policy == SCHED_TT) {
		memcpy(bind.name, t->entity, sizeof(bind.name));
		err = ioctl(device, MACROTICK_IOC_BIND, &bind) ? -errno : 0;
		WRITE_ONCE(log->joined, err ?: 1);
		for (int i = 0; !err && i < t->nr_steps; i++) {
			if (t->steps[i].verb == YIELD)
				return set_sched(SCHED_TT, 0, 0, 0, 0);
		}
		return err;
	}
	WRITE_ONCE(log->joined, 1);
	while (!READ_ONCE(board->epoch))
		sleep_until(now() + 1000000);
	if (t->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(t->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return -errno;
	}
	return set_sched(t->policy, t->priority, t->runtime * UNIT_NS, t->period * UNIT_NS, 0);
}

static void __noreturn live(const struct thread *t, struct log *log, uint64_t cycle_ns)
{
	char name[] = { 'g', 't', '-', t->name, 0 };

	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (join(t, log))
		_exit(1);
	for (int round = 0; ; round++) {
		for (int i = 0; i < t->nr_steps; i++)
			do_step(&t->steps[i], round, cycle_ns, log);
	}
}

/* Forks a thread and waits until it has joined. */
static int begin_thread(struct thread *t, struct log *log, uint64_t cycle_ns)
{
	uint64_t limit = now() + 5000000000ULL;

	t->pid = fork();
	if (t->pid < 0)
		return -errno;
	if (!t->pid)
		live(t, log, cycle_ns);
	while (!READ_ONCE(log->joined) && now() < limit)
		sleep_until(now() + UNIT_NS);
	return log->joined == 1 ? 0 : log->joined ?: -ETIMEDOUT;
}

/*
 * Tracing, in an instance of its own
 */

static int set(const char *file, const char *value)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), INSTANCE "/%s", file);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int start_tracing(void)
{
	return set("trace", "") ?: set("events/sched/sched_switch/enable", "1") ?:
		set("tracing_on", "1");
}

static void stop_tracing(void)
{
	set("tracing_on", "0");
	set("events/sched/sched_switch/enable", "0");
}

/* comm-pid [001] d..2. 12.345678: sched_switch: ... ==> next_comm=NAME next_pid=... */
static bool decode_switch(const char *line, struct switch_to *s)
{
	const char *next = strstr(line, " next_comm="), *event = strstr(line, ": sched_switch: ");
	const char *cpu = strchr(line, '['), *time;
	unsigned long seconds, micros;

	if (!next || !event || !cpu)
		return false;
	for (time = event; time > line && time[-1] != ' '; time--)
		;
	if (sscanf(time, "%lu.%lu", &seconds, &micros) != 2)
		return false;
	next += strlen(" next_comm=");
	s->at = seconds * 1000000000ULL + micros * 1000;
	s->cpu = atoi(cpu + 1);
	s->thread = !strncmp(next, "gt-", 3) ? next[3] : !strncmp(next, "swapper", 7) ? '.' : '-';
	return true;
}

static int read_switches(void)
{
	FILE *file = fopen(INSTANCE "/trace", "r");
	char line[512];
	int nr = 0;

	while (file && nr < MAX_SWITCHES && fgets(line, sizeof(line), file))
		nr += decode_switch(line, &switches[nr]);
	if (file)
		fclose(file);
	return nr;
}

/*
 * Prints the thread that had most of each cell. A thread with about half of a
 * cell depends on the compiler's code for the kernel. Such a cell has no clear
 * majority.
 */
static void print_timeline(FILE *out, const struct golden_case *c, int nr_switches, int cpu)
{
	static uint64_t shares[MAX_CELLS][128];
	int nr = c->cycle * c->cycles, last = -1;
	uint64_t from, until, part;

	memset(shares, 0, sizeof(shares));
	for (int i = 0; i <= nr_switches; i++) {
		if (i < nr_switches && switches[i].cpu != cpu)
			continue;
		until = i < nr_switches ? switches[i].at : ~0ULL;
		if (until > instant(nr))
			until = instant(nr);
		from = last < 0 ? until : switches[last].at;
		if (from < board->epoch)
			from = board->epoch;
		for (; from < until; from += part) {
			int cell = (from - board->epoch) / UNIT_NS;

			part = instant(cell + 1) < until ? instant(cell + 1) - from : until - from;
			shares[cell][switches[last].thread & 127] += part;
		}
		last = i;
	}
	fprintf(out, "cpu %d ", cpu);
	for (int cell = 0; cell < nr; cell++) {
		char most = 0;

		for (int letter = 1; letter < 128; letter++) {
			if (shares[cell][letter] > shares[cell][(int)most])
				most = letter;
		}
		if (shares[cell][(int)most] < CLEAR_NS)
			most = '?';
		fprintf(out, "%s%c", cell % c->cycle ? "" : "|", most);
	}
	fprintf(out, "|\n");
}

/*
 * Playing
 */

static void print_jobs(FILE *out, const struct golden_case *c, int thread)
{
	const struct log *log = &board->logs[thread];

	if (!log->nr)
		return;
	fprintf(out, "%c", c->threads[thread].name);
	for (int i = 0; i < log->nr; i++) {
		const struct macrotick_wait *job = &log->jobs[i];

		if (job->nominal_ns >= instant(c->cycle * c->cycles))
			continue;
		fprintf(out, " %llu@%g", job->job,
			(double)(int64_t)(job->nominal_ns - board->epoch) / UNIT_NS);
		if (job->lost)
			fprintf(out, "-%llu", job->lost);
	}
	fprintf(out, "\n");
}

static int read_counters(struct macrotick_entity_stats *stats, int nr)
{
	for (int i = 0; i < nr; i++) {
		stats[i] = (struct macrotick_entity_stats){ .size = sizeof(*stats), .entity = i };
		if (ioctl(device, MACROTICK_IOC_STATS, &stats[i]))
			return -errno;
	}
	return 0;
}

static void print_counters(FILE *out, const struct macrotick_entity_stats *stats, int nr)
{
	for (int i = 0; i < nr; i++, stats++) {
		fprintf(out, "%s: activations %llu completions %llu misses %llu ", stats->name,
			stats->activations, stats->completions, stats->misses);
		fprintf(out, "lost %llu skipped %llu preemptions %llu\n", stats->lost,
			stats->skipped, stats->preemptions);
	}
}

static int install(const struct golden_case *c)
{
	struct macrotick_install install = {
		.size = sizeof(install),
		.clockid = c->synced ? CLOCK_TAI : CLOCK_MONOTONIC,
		.nr_entities = c->nr_entities,
		.nr_windows = c->nr_windows,
		.cycle_ns = c->cycle * UNIT_NS,
		.entities = (uintptr_t)c->entities,
		.windows = (uintptr_t)c->windows,
	};

	if (!ioctl(device, MACROTICK_IOC_INSTALL, &install))
		return 0;
	ksft_print_msg("refused: reason %u, index %u\n", install.error, install.error_index);
	return -errno;
}

/* Starts the table and gives all threads the epoch, on CLOCK_MONOTONIC. */
static int start(const struct golden_case *c)
{
	struct macrotick_start start = { .size = sizeof(start) };
	struct macrotick_get get = { .size = sizeof(get) };

	start.epoch_ns = read_clock(c->synced ? CLOCK_TAI : CLOCK_MONOTONIC) + 20000000;
	if (ioctl(device, MACROTICK_IOC_START, &start) || ioctl(device, MACROTICK_IOC_GET, &get))
		return -errno;
	WRITE_ONCE(board->epoch, start.epoch_ns - get.offset_ns);
	return 0;
}

static int step_clock(int64_t ns)
{
	struct timex change = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	change.time.tv_sec = ns < 0 ? -1 : 0;
	change.time.tv_usec = ns < 0 ? ns + 1000000000 : ns;
	return clock_adjtime(CLOCK_REALTIME, &change) < 0 ? -errno : 0;
}

static void vary_instant(void)
{
	const char *seed = getenv("MACROTICK_SEED");

	if (!seed)
		return;
	srandom(atoi(seed) ^ getpid());
	sleep_until(now() + random() % 10000000);
}

static int play(struct golden_case *c, FILE *out)
{
	struct macrotick_entity_stats stats[MAX];
	uint64_t end, cycle_ns = c->cycle * UNIT_NS;
	int i, nr, err = install(c);

	vary_instant();
	board->grid = now();
	for (i = 0; !err && i < c->nr_threads; i++) {
		order = i;
		err = begin_thread(&c->threads[i], &board->logs[i], cycle_ns);
	}
	if (err)
		return err;
	sleep_until(now() + 5000000);
	err = start_tracing();
	/* Not between the looks of two threads. */
	sleep_until(next_look(UNIT_NS / 2));
	err = err ?: start(c);
	for (i = 0; !err && i < c->nr_steps; i++) {
		sleep_until(instant(c->steps[i].at));
		err = step_clock(c->steps[i].by * UNIT_NS);
	}
	if (!err) {
		end = instant(c->cycle * c->cycles);
		sleep_until(end - UNIT_NS / 2);
		err = read_counters(stats, c->nr_entities);
		sleep_until(end + UNIT_NS);
	}
	stop_tracing();
	if (err)
		return err;
	nr = read_switches();
	for (i = 0; i < c->nr_cpus; i++)
		print_timeline(out, c, nr, i);
	for (i = 0; i < c->nr_threads; i++)
		print_jobs(out, c, i);
	print_counters(out, stats, c->nr_entities);
	return 0;
}

static void clean_up(struct golden_case *c)
{
	for (int i = 0; i < c->nr_threads; i++) {
		if (c->threads[i].pid > 0) {
			kill(c->threads[i].pid, SIGKILL);
			waitpid(c->threads[i].pid, NULL, 0);
		}
	}
	ioctl(device, MACROTICK_IOC_REMOVE);
	close(channel[0]);
	close(channel[1]);
}

static void print_lines(const char *head, const char *text)
{
	ksft_print_msg("%s:\n", head);
	for (int length; *text; text += length + !!text[length]) {
		length = strcspn(text, "\n");
		ksft_print_msg("  %.*s\n", length, text);
	}
}

static void test(const char *path)
{
	static struct golden_case c;
	char *expected = decode(&c, path), *played = NULL;
	size_t size;
	FILE *out;
	int err;

	if (c.nr_cpus > sysconf(_SC_NPROCESSORS_ONLN)) {
		ksft_print_msg("needs %d CPUs\n", c.nr_cpus);
		ksft_test_result_skip("%s\n", path);
		return;
	}
	memset(board, 0, sizeof(*board));
	out = open_memstream(&played, &size);
	if (!out || pipe(channel))
		ksft_exit_fail_perror("cannot start");
	err = play(&c, out);
	clean_up(&c);
	fclose(out);
	if (err)
		ksft_print_msg("%s\n", strerror(-err));
	else if (strcmp(played, expected)) {
		print_lines("expected", expected);
		print_lines("played", played);
	}
	ksft_test_result(!err && !strcmp(played, expected), "%s\n", path);
	free(played);
}

static void set_up(void)
{
	struct macrotick_get get = { .size = sizeof(get) };
	int err;

	device = open(MACROTICK_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		ksft_exit_skip("no %s\n", MACROTICK_DEVICE);
	if (geteuid())
		ksft_exit_skip("needs root\n");
	if (ioctl(device, MACROTICK_IOC_GET, &get) || get.state != MACROTICK_STATE_EMPTY)
		ksft_exit_skip("a table is installed\n");
	if (mkdir(INSTANCE, 0700) && errno != EEXIST)
		ksft_exit_skip("no tracefs at %s\n", TRACING);
	err = set("tracing_on", "0") ?: set("trace_clock", "mono") ?: set("buffer_size_kb", "2048");
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	/*
	 * This thread must read clocks and counters in time. Its children start
	 * under SCHED_OTHER.
	 */
	err = err ?: set_sched(SCHED_FIFO, 90, 0, 0, SCHED_FLAG_RESET);
	if (err || board == MAP_FAILED)
		ksft_exit_fail_msg("cannot set up: %s\n", strerror(-err));
	several_cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

int main(int argc, char **argv)
{
	glob_t files = { .gl_pathc = argc - 1, .gl_pathv = argv + 1 };

	ksft_print_header();
	set_up();
	if (argc == 1 && glob("golden/*.txt", 0, NULL, &files))
		ksft_exit_fail_msg("no schedules in golden\n");
	ksft_set_plan(files.gl_pathc);
	for (size_t i = 0; i < files.gl_pathc; i++)
		test(files.gl_pathv[i]);
	rmdir(INSTANCE);
	ksft_finished();
}
