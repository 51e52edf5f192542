/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SHIM_LINUX_HRTIMER_DEFS_H
#define SHIM_LINUX_HRTIMER_DEFS_H

#include <linux/ktime.h>

enum {
	HRTIMER_BASE_MONOTONIC,
};

struct hrtimer_clock_base {
	ktime_t offset;
};

#endif
