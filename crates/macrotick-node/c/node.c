/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of include/macrotick.h as symbols: the built-in workloads run the same code as applications.
 * Also the work of a job, and the layouts that the test in src/block/abi.rs compares with its own.
 */
#include <macrotick.h>

#include <stddef.h>

int macrotick_node_join(void)
{
	return macrotick_join(NULL);
}

int macrotick_node_ready(void)
{
	return macrotick_ready();
}

int macrotick_node_wait(struct macrotick_job *job)
{
	return macrotick_wait(job);
}

int macrotick_node_leave(void)
{
	return macrotick_leave();
}

/* Returns the epoch that macrotick_ready() waited for, or zero without a runner. */
uint64_t macrotick_node_epoch(void)
{
	return macrotick_context_.block ? macrotick_context_.block->epoch_ns : 0;
}

/*
 * Does a fixed amount of work: the same few instructions, `rounds` times. The lab's emulator executes `nop` much faster
 * than others, and counts it alike.
 */
void macrotick_node_spin(uint64_t rounds)
{
	for (; rounds; rounds--)
		__asm__ volatile(".rept 14\n\tnop\n\t.endr" ::: "memory");
}

/* Sizes and offsets in the order in which src/block/abi.rs lists its own. */
const uint32_t macrotick_node_layout[] = {
	sizeof(struct macrotick_job), offsetof(struct macrotick_job, start_ns), offsetof(struct macrotick_job, lost),
	sizeof(struct macrotick_record), offsetof(struct macrotick_record, end_ns),
	sizeof(struct macrotick_block), offsetof(struct macrotick_block, size), offsetof(struct macrotick_block, backend),
	offsetof(struct macrotick_block, cycle_ns), offsetof(struct macrotick_block, nr_offsets),
	offsetof(struct macrotick_block, capacity), offsetof(struct macrotick_block, records_at),
	offsetof(struct macrotick_block, epoch_ns), offsetof(struct macrotick_block, run),
	offsetof(struct macrotick_block, released), offsetof(struct macrotick_block, phase),
	offsetof(struct macrotick_block, tid), offsetof(struct macrotick_block, flags),
	offsetof(struct macrotick_block, completed), offsetof(struct macrotick_block, count),
	offsetof(struct macrotick_block, taken), offsetof(struct macrotick_block, unrecorded),
	offsetof(struct macrotick_block, lateness_ns), offsetof(struct macrotick_block, worst_ns),
};
const uint32_t macrotick_node_layout_len = sizeof(macrotick_node_layout) / sizeof(macrotick_node_layout[0]);
