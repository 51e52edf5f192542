/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timershield

#if !defined(_TRACE_TIMERSHIELD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TIMERSHIELD_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(timershield,
	TP_PROTO(int level, int running, s64 expires),
	TP_ARGS(level, running, expires),
	TP_STRUCT__entry(
		__field(int, level)
		__field(int, running)
		__field(s64, expires)
	),
	TP_fast_assign(
		__entry->level = level;
		__entry->running = running;
		__entry->expires = expires;
	),
	TP_printk("level=%d running=%d expires=%lld",
		  __entry->level, __entry->running, __entry->expires)
);

/* The event device is no longer programmed for a timer of a lower level than the running task. */
DEFINE_EVENT(timershield, timershield_masked,
	TP_PROTO(int level, int running, s64 expires),
	TP_ARGS(level, running, expires));

/* A timer that expired while it was masked is served. */
DEFINE_EVENT(timershield, timershield_deferred,
	TP_PROTO(int level, int running, s64 expires),
	TP_ARGS(level, running, expires));

#endif /* _TRACE_TIMERSHIELD_H */

#include <trace/define_trace.h>
