/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SHIM_LINUX_KTIME_H
#define SHIM_LINUX_KTIME_H

#include <stdint.h>

typedef int64_t ktime_t;

#define KTIME_MAX INT64_MAX

#endif
