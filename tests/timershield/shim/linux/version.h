/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The version of Linux with the timer queue of the shim. */
#ifndef SHIM_LINUX_VERSION_H
#define SHIM_LINUX_VERSION_H

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)

#endif
