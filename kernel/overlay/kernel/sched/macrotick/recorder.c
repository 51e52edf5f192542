// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: the flight recorder.
 *
 * Each CPU has a ring with its latest events. A program maps all rings, and
 * reads them at any time. Without a recorder, the trace points are patched out.
 *
 * An event is written with preemption disabled, and may be interrupted: the
 * interrupt's events then come behind it in the ring. The sequence number of an
 * event is 0 while it is being written. So a reader knows a complete event from
 * one that changed meanwhile. There is no lock.
 */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/security.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

#include "internal.h"

#include <trace/events/irq.h>
#include <trace/events/lock.h>
#include <trace/events/macrotick.h>
#include <trace/events/sched.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/trace/irq_vectors.h>
#if MT_LINUX_7
#include <trace/events/exceptions.h>
#else
#include <asm/trace/exceptions.h>
#endif
#endif

#define MT_MIN_EVENTS	(PAGE_SIZE / sizeof(struct macrotick_event))
#define MT_MAX_EVENTS	(1U << 17)

static DEFINE_MUTEX(mt_record_mutex);
/* The file that started the recorder, and its rings. Both under mt_record_mutex. */
static struct file *mt_record_owner;
static void *mt_record_area;

/* These change only while no trace point calls us. */
static u32 mt_record_mask;
static DEFINE_PER_CPU(struct macrotick_event *, mt_record_ring);
static DEFINE_PER_CPU(u32, mt_record_next);

/* An event that is being written. */
struct mt_entry {
	struct macrotick_event	*event;
	u32			sequence;
};

/* Trace points call with preemption disabled, but not since 7.0. */
static __always_inline struct mt_entry mt_take(u16 kind)
{
	struct macrotick_event *event;
	u32 sequence;

	preempt_disable_notrace();
	/* Also against interrupts: no two events have the same place. */
	sequence = this_cpu_inc_return(mt_record_next);
	event = __this_cpu_read(mt_record_ring) + (sequence & mt_record_mask);
	WRITE_ONCE(event->sequence, 0);
	smp_wmb(); /* Pairs with the reader's second look at the sequence. */
	event->ns = ktime_get_mono_fast_ns();
	event->thread = current->pid;
	event->kind = kind;
	return (struct mt_entry){ event, sequence };
}

static __always_inline void mt_give(struct mt_entry entry)
{
	smp_wmb(); /* Pairs with the reader's first look at the sequence. */
	WRITE_ONCE(entry.event->sequence, entry.sequence);
	preempt_enable_notrace();
}

/* Records an event with at most two numbers. */
static __always_inline void mt_record(u16 kind, u32 object, u64 data)
{
	struct mt_entry entry = mt_take(kind);

	entry.event->object = object;
	entry.event->data = data;
	mt_give(entry);
}

static __always_inline void mt_record_thread(u16 kind, const struct task_struct *p, u64 data)
{
	struct mt_entry entry = mt_take(kind);

	entry.event->object = p->pid;
	entry.event->data = data;
	memcpy(entry.event->name, p->comm, TASK_COMM_LEN);
	mt_give(entry);
}

static __always_inline void mt_record_entity(u16 kind, const char *name, u32 object, u64 data)
{
	struct mt_entry entry = mt_take(kind);

	entry.event->object = object;
	entry.event->data = data;
	memcpy(entry.event->name, name, MACROTICK_NAME_LEN);
	mt_give(entry);
}

static void on_switch(void *unused, bool preempt, struct task_struct *prev,
		      struct task_struct *next, unsigned int state)
{
	mt_record_thread(MACROTICK_EVENT_SWITCH, next,
			 (u64)(u32)next->prio << 32 | (preempt ? 0 : state));
}

static void on_waking(void *unused, struct task_struct *p)
{
	mt_record_thread(MACROTICK_EVENT_WAKES, p, (u64)(u32)p->prio << 32);
}

#if MT_LINUX_7
static void on_exit(void *unused, struct task_struct *p, bool group_dead)
#else
static void on_exit(void *unused, struct task_struct *p)
#endif
{
	mt_record(MACROTICK_EVENT_EXITS, p->pid, 0);
}

static void on_irq_entry(void *unused, int irq, struct irqaction *action)
{
	mt_record(MACROTICK_EVENT_IRQ_BEGINS, irq, 0);
}

static void on_irq_exit(void *unused, int irq, struct irqaction *action, int ret)
{
	mt_record(MACROTICK_EVENT_IRQ_ENDS, irq, 0);
}

static void on_softirq_entry(void *unused, unsigned int vector)
{
	mt_record(MACROTICK_EVENT_SOFTIRQ_BEGINS, vector, 0);
}

static void on_softirq_exit(void *unused, unsigned int vector)
{
	mt_record(MACROTICK_EVENT_SOFTIRQ_ENDS, vector, 0);
}

static void on_contention_begin(void *unused, void *lock, unsigned int flags)
{
	mt_record(MACROTICK_EVENT_LOCK_BEGINS, flags, (unsigned long)lock);
}

static void on_contention_end(void *unused, void *lock, int ret)
{
	mt_record(MACROTICK_EVENT_LOCK_ENDS, ret, (unsigned long)lock);
}

static void on_window_begin(void *unused, const char *entity, int cpu, u64 instant)
{
	mt_record_entity(MACROTICK_EVENT_WINDOW_BEGINS, entity, cpu, instant);
}

static void on_window_skipped(void *unused, const char *entity, int cpu, u64 instant)
{
	mt_record_entity(MACROTICK_EVENT_WINDOW_SKIPPED, entity, cpu, instant);
}

static void on_miss(void *unused, const char *entity, int cpu, u64 instant)
{
	mt_record_entity(MACROTICK_EVENT_MISSES, entity, cpu, instant);
}

static void on_release(void *unused, struct task_struct *p, const char *entity, u64 job,
		       u64 nominal)
{
	mt_record_entity(MACROTICK_EVENT_JOB_BEGINS, entity, job, nominal);
}

static void on_complete(void *unused, struct task_struct *p, const char *entity, u64 job,
			u64 nominal)
{
	mt_record_entity(MACROTICK_EVENT_JOB_ENDS, entity, job, nominal);
}

#ifdef CONFIG_X86_LOCAL_APIC
static void on_vector_entry(void *unused, int vector)
{
	mt_record(MACROTICK_EVENT_VECTOR_BEGINS, vector, 0);
}

static void on_vector_exit(void *unused, int vector)
{
	mt_record(MACROTICK_EVENT_VECTOR_ENDS, vector, 0);
}

static void on_page_fault(void *unused, unsigned long address, struct pt_regs *regs,
			  unsigned long error)
{
	mt_record(MACROTICK_EVENT_PAGE_FAULT, error, address);
}
#endif

/* The functions get the arguments of their trace points, behind a pointer that is not used. */
static const struct {
	struct tracepoint	*point;
	void			*function;
} mt_record_points[] = {
	{ &__tracepoint_sched_switch, on_switch },
	{ &__tracepoint_sched_waking, on_waking },
	{ &__tracepoint_sched_process_exit, on_exit },
	{ &__tracepoint_irq_handler_entry, on_irq_entry },
	{ &__tracepoint_irq_handler_exit, on_irq_exit },
	{ &__tracepoint_softirq_entry, on_softirq_entry },
	{ &__tracepoint_softirq_exit, on_softirq_exit },
	{ &__tracepoint_contention_begin, on_contention_begin },
	{ &__tracepoint_contention_end, on_contention_end },
	{ &__tracepoint_macrotick_window_begin, on_window_begin },
	{ &__tracepoint_macrotick_window_skipped, on_window_skipped },
	{ &__tracepoint_macrotick_miss, on_miss },
	{ &__tracepoint_macrotick_release, on_release },
	{ &__tracepoint_macrotick_complete, on_complete },
#ifdef CONFIG_X86_LOCAL_APIC
	{ &__tracepoint_local_timer_entry, on_vector_entry },
	{ &__tracepoint_local_timer_exit, on_vector_exit },
	{ &__tracepoint_irq_work_entry, on_vector_entry },
	{ &__tracepoint_irq_work_exit, on_vector_exit },
#ifdef CONFIG_SMP
	{ &__tracepoint_reschedule_entry, on_vector_entry },
	{ &__tracepoint_reschedule_exit, on_vector_exit },
	{ &__tracepoint_call_function_entry, on_vector_entry },
	{ &__tracepoint_call_function_exit, on_vector_exit },
	{ &__tracepoint_call_function_single_entry, on_vector_entry },
	{ &__tracepoint_call_function_single_exit, on_vector_exit },
#endif
	{ &__tracepoint_page_fault_user, on_page_fault },
	{ &__tracepoint_page_fault_kernel, on_page_fault },
#endif
};

/* Ends the calls of the first @n trace points. */
static void unregister_points(unsigned int n)
{
	while (n--)
		tracepoint_probe_unregister(mt_record_points[n].point,
					    mt_record_points[n].function, NULL);
	tracepoint_synchronize_unregister();
}

static int register_points(void)
{
	unsigned int n;
	int err;

	for (n = 0; n < ARRAY_SIZE(mt_record_points); n++) {
		err = tracepoint_probe_register(mt_record_points[n].point,
						mt_record_points[n].function, NULL);
		if (err) {
			unregister_points(n);
			return err;
		}
	}
	return 0;
}

static void set_rings(void *area, size_t ring_size)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu(mt_record_ring, cpu) = area ? area + cpu * ring_size : NULL;
		per_cpu(mt_record_next, cpu) = 0;
	}
}

static int start(struct file *file, struct macrotick_recorder *arg)
{
	size_t ring_size = (size_t)arg->nr_events * sizeof(struct macrotick_event);
	void *area = vmalloc_user(array_size(ring_size, nr_cpu_ids));
	int err;

	if (!area)
		return -ENOMEM;
	mt_record_mask = arg->nr_events - 1;
	set_rings(area, ring_size);
	err = register_points();
	if (err) {
		set_rings(NULL, 0);
		vfree(area);
		return err;
	}
	mt_record_owner = file;
	mt_record_area = area;
	arg->nr_rings = nr_cpu_ids;
	return 0;
}

/**
 * mt_start_recorder - starts to record the events of all CPUs
 * @file: the file that owns the recorder, until its release
 * @arg: the number of events; gets the number of rings
 *
 * Return: 0, or an error: see include/uapi/linux/macrotick.h.
 */
int mt_start_recorder(struct file *file, struct macrotick_recorder *arg)
{
	int err;

	/* As for tracefs: the events name threads and addresses of others. */
	if (!perfmon_capable())
		return -EPERM;
	err = security_locked_down(LOCKDOWN_TRACEFS);
	if (err)
		return err;
	if (arg->flags || !is_power_of_2(arg->nr_events) || arg->nr_events < MT_MIN_EVENTS ||
	    arg->nr_events > MT_MAX_EVENTS)
		return -EINVAL;
	guard(mutex)(&mt_record_mutex);
	return mt_record_owner ? -EBUSY : start(file, arg);
}

/* Maps the rings of the file's recorder, for reading. */
int mt_map_recorder(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	guard(mutex)(&mt_record_mutex);
	if (mt_record_owner != file)
		return -ENODEV;
	vm_flags_clear(vma, VM_MAYWRITE);
	/* Refuses what is beyond the end. */
	return remap_vmalloc_range(vma, mt_record_area, vma->vm_pgoff);
}

/* The file is closed, and nothing maps it any longer. */
void mt_end_recorder(struct file *file)
{
	guard(mutex)(&mt_record_mutex);
	if (mt_record_owner != file)
		return;
	unregister_points(ARRAY_SIZE(mt_record_points));
	set_rings(NULL, 0);
	vfree(mt_record_area);
	mt_record_owner = NULL;
	mt_record_area = NULL;
}
