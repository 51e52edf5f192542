/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM macrotick

#if !defined(_TRACE_MACROTICK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MACROTICK_H

#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <uapi/linux/macrotick.h>

/* Instants are those of the table on CLOCK_MONOTONIC, not the moment of tracing. */

DECLARE_EVENT_CLASS(macrotick_window,
	TP_PROTO(const char *entity, int cpu, u64 instant),
	TP_ARGS(entity, cpu, instant),
	TP_STRUCT__entry(
		__array(char, entity, MACROTICK_NAME_LEN)
		__field(int, cpu)
		__field(u64, instant)
	),
	TP_fast_assign(
		memcpy(__entry->entity, entity, MACROTICK_NAME_LEN);
		__entry->cpu = cpu;
		__entry->instant = instant;
	),
	TP_printk("entity=%s cpu=%d instant=%llu",
		  __entry->entity, __entry->cpu, __entry->instant)
);

DEFINE_EVENT(macrotick_window, macrotick_window_begin,
	TP_PROTO(const char *entity, int cpu, u64 instant),
	TP_ARGS(entity, cpu, instant));

DEFINE_EVENT(macrotick_window, macrotick_window_end,
	TP_PROTO(const char *entity, int cpu, u64 instant),
	TP_ARGS(entity, cpu, instant));

/* A window that had passed when its interrupt came. */
DEFINE_EVENT(macrotick_window, macrotick_window_skipped,
	TP_PROTO(const char *entity, int cpu, u64 instant),
	TP_ARGS(entity, cpu, instant));

/* A job was not complete at the end of its DEADLINE window. */
DEFINE_EVENT(macrotick_window, macrotick_miss,
	TP_PROTO(const char *entity, int cpu, u64 instant),
	TP_ARGS(entity, cpu, instant));

DECLARE_EVENT_CLASS(macrotick_job,
	TP_PROTO(struct task_struct *p, const char *entity, u64 job, u64 nominal),
	TP_ARGS(p, entity, job, nominal),
	TP_STRUCT__entry(
		__array(char, entity, MACROTICK_NAME_LEN)
		__field(pid_t, pid)
		__field(u64, job)
		__field(u64, nominal)
	),
	TP_fast_assign(
		memcpy(__entry->entity, entity, MACROTICK_NAME_LEN);
		__entry->pid = p->pid;
		__entry->job = job;
		__entry->nominal = nominal;
	),
	TP_printk("entity=%s pid=%d job=%llu nominal=%llu",
		  __entry->entity, __entry->pid, __entry->job, __entry->nominal)
);

DEFINE_EVENT(macrotick_job, macrotick_release,
	TP_PROTO(struct task_struct *p, const char *entity, u64 job, u64 nominal),
	TP_ARGS(p, entity, job, nominal));

DEFINE_EVENT(macrotick_job, macrotick_complete,
	TP_PROTO(struct task_struct *p, const char *entity, u64 job, u64 nominal),
	TP_ARGS(p, entity, job, nominal));

/* The SYNC window that begins at the instant became longer by the correction. */
TRACE_EVENT(macrotick_sync,
	TP_PROTO(int cpu, u64 instant, s64 correction, s64 rest),
	TP_ARGS(cpu, instant, correction, rest),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(u64, instant)
		__field(s64, correction)
		__field(s64, rest)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->instant = instant;
		__entry->correction = correction;
		__entry->rest = rest;
	),
	TP_printk("cpu=%d instant=%llu correction=%lld rest=%lld",
		  __entry->cpu, __entry->instant, __entry->correction, __entry->rest)
);

#endif /* _TRACE_MACROTICK_H */

#include <trace/define_trace.h>
