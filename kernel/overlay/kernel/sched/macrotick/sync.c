// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: tables that follow CLOCK_TAI.
 *
 * Timers use CLOCK_MONOTONIC. Both clocks are slewed alike. Only their offset
 * can change: when a program sets the clock, or over a suspend. The table's
 * grid starts on CLOCK_MONOTONIC at the offset of that instant. At each sync
 * window it moves towards the offset of the clock, as far as the window's bound
 * allows. Nothing else is open then on any CPU of the table.
 *
 * All CPUs move by the same amount in the same window, whatever happens to the
 * clock between their interrupts: the first CPU there decides. A CPU that comes
 * later than the next decision has missed the windows that the decision was
 * for.
 */
#include "internal.h"

#include <trace/events/macrotick.h>

/* Checks a window with SYNC, before its CPU and place are checked. */
int mt_check_sync(struct macrotick_install *arg, u32 index, const struct macrotick_window *in)
{
	if (arg->clockid != CLOCK_TAI || in->flags != MACROTICK_WINDOW_SYNC || in->entity)
		return mt_refuse(arg, MACROTICK_ERR_WINDOW_SYNC, index, 0);
	if (!in->bound_ns || in->length_ns < MACROTICK_MIN_WINDOW_NS + in->bound_ns)
		return mt_refuse(arg, MACROTICK_ERR_SYNC_BOUND, index, 0);
	return 0;
}

static unsigned int next_sync(const struct mt_schedule *s, unsigned int i)
{
	while (i < s->nr_windows && !(s->windows[i].flags & MACROTICK_WINDOW_SYNC))
		i++;
	return i;
}

static bool same_sync(const struct mt_window *a, const struct mt_window *b)
{
	return a->offset == b->offset && a->end == b->end && a->bound == b->bound;
}

/* Returns the place of a CPU's window in the table, or of its last one, for an error. */
static u32 place_of(const struct macrotick_table *table, const struct mt_schedule *s,
		    unsigned int i)
{
	return s->windows - table->windows + min(i, s->nr_windows - 1);
}

static int compare_sync(struct macrotick_install *arg, const struct macrotick_table *table,
			const struct mt_schedule *s, const struct mt_schedule *first)
{
	unsigned int i = next_sync(s, 0), k = next_sync(first, 0);

	while (i < s->nr_windows && k < first->nr_windows &&
	       same_sync(&s->windows[i], &first->windows[k])) {
		i = next_sync(s, i + 1);
		k = next_sync(first, k + 1);
	}
	if (i < s->nr_windows || k < first->nr_windows)
		return mt_refuse(arg, MACROTICK_ERR_SYNC_CPU, place_of(table, s, i),
				 place_of(table, first, k));
	return 0;
}

/* Checks that every CPU has the sync windows of the first one, and that there are some. */
int mt_decode_sync(struct macrotick_install *arg, struct macrotick_table *table)
{
	const struct mt_schedule *first = NULL;
	unsigned int cpu;
	int err;

	for_each_possible_cpu(cpu) {
		const struct mt_schedule *s = &table->schedules[cpu];

		if (!s->nr_windows)
			continue;
		first = first ?: s;
		if (next_sync(first, 0) == first->nr_windows)
			return mt_refuse(arg, MACROTICK_ERR_SYNC_CPU, 0, 0);
		err = compare_sync(arg, table, s, first);
		if (err)
			return err;
	}
	return 0;
}

/* Returns by how much the table's clock is ahead of CLOCK_MONOTONIC. */
s64 mt_clock_offset(const struct macrotick_table *table)
{
	return table->follows ? ktime_mono_to_any(0, TK_OFFS_TAI) : 0;
}

/* Initialises the grid before a table starts. The caller sets the epoch on CLOCK_MONOTONIC. */
void mt_init_grid(struct macrotick_table *table, u64 clock_epoch, s64 offset)
{
	struct mt_grid *grid = &table->grid;

	guard(raw_spinlock_irqsave)(&grid->lock);
	grid->fixed = false;
	grid->clock_epoch = clock_epoch;
	grid->offset = offset;
	grid->shift = 0;
	grid->rest = 0;
	grid->decided = 0;
	grid->stretched = 0;
	grid->shrunk = 0;
	grid->corrections = 0;
}

/**
 * mt_fix_grid - makes a running table follow its clock no longer
 * @table: the table
 * @offset: set to the offset at which it stays
 *
 * All decisions are in the past. The next future boundary is therefore the same
 * for CPUs that have not reached the last decision.
 *
 * Return: an instant on the table's clock at which a cycle begins or began.
 */
u64 mt_fix_grid(struct macrotick_table *table, s64 *offset)
{
	struct mt_grid *grid = &table->grid;

	guard(raw_spinlock_irqsave)(&grid->lock);
	grid->fixed = true;
	*offset = grid->offset;
	return table->epoch + grid->shift + grid->offset;
}

/* Returns the nearest whole number of cycles in an error: they are no error. */
static s64 whole_cycles(s64 error, u64 cycle)
{
	s64 half = cycle / 2;

	if (likely(abs(error) <= half))
		return 0;
	return div64_s64(error < 0 ? error - half : error + half, cycle) * cycle;
}

static void note_correction(struct mt_grid *grid, s64 by)
{
	if (likely(!by))
		return;
	grid->shift += by;
	grid->offset -= by;
	grid->corrections++;
	if (by > 0)
		grid->stretched += by;
	else
		grid->shrunk -= by;
}

/* Decides for all CPUs by how much the window becomes longer. */
static void decide(struct macrotick_table *table, const struct mt_window *w, u64 now)
{
	struct mt_grid *grid = &table->grid;
	u64 end = grid->decided + grid->shift + w->end - w->offset;
	s64 error, by, shortest;

	error = grid->offset - mt_clock_offset(table);
	grid->offset -= whole_cycles(error, table->cycle);
	error -= whole_cycles(error, table->cycle);
	/* After a late interrupt, a shorter window would take time from the windows after it. */
	shortest = clamp((s64)(now - end), -(s64)w->bound, 0);
	by = clamp(error, shortest, (s64)w->bound);
	note_correction(grid, by);
	grid->rest = error - by;
}

/**
 * mt_sync - begins a sync window
 * @rq: the CPU's run queue, locked
 * @c: the CPU's position, at the window
 * @w: the window
 * @now: the instant of the interrupt
 */
void mt_sync(struct rq *rq, struct mt_cpu *c, const struct mt_window *w, u64 now)
{
	struct mt_grid *grid = &c->table->grid;
	u64 at = c->base - c->shift + w->offset;
	s64 by, rest;

	trace_macrotick_window_begin(w->entity->name, cpu_of(rq), c->base + w->offset);
	raw_spin_lock(&grid->lock);
	if (at > grid->decided && !grid->fixed) {
		grid->decided = at;
		decide(c->table, w, now);
	}
	by = grid->shift - c->shift;
	rest = grid->rest;
	raw_spin_unlock(&grid->lock);
	if (likely(!by))
		return;
	trace_macrotick_sync(cpu_of(rq), c->base + w->offset, by, rest);
	c->base += by;
	c->shift += by;
}

/* A CPU passes over whole cycles: the other CPUs may have moved. */
void mt_follow_grid(struct mt_cpu *c)
{
	struct mt_grid *grid = &c->table->grid;
	s64 shift;

	scoped_guard(raw_spinlock, &grid->lock)
		shift = grid->shift;
	c->base += shift - c->shift;
	c->shift = shift;
}

/* Fills in the fields of MACROTICK_IOC_GET that a running table has. */
void mt_describe_grid(struct macrotick_get *arg, struct macrotick_table *table)
{
	const struct mt_grid *grid = &table->grid;
	s64 error;

	guard(raw_spinlock_irqsave)(&table->grid.lock);
	error = grid->offset - mt_clock_offset(table);
	arg->epoch_ns = grid->clock_epoch;
	arg->offset_ns = grid->offset;
	arg->error_ns = error - whole_cycles(error, table->cycle);
	arg->stretched_ns = grid->stretched;
	arg->shrunk_ns = grid->shrunk;
	arg->corrections = grid->corrections;
}
