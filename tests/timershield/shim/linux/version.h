/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The version whose timer queue the shim has. */
#ifndef SHIM_LINUX_VERSION_H
#define SHIM_LINUX_VERSION_H

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)

#endif
