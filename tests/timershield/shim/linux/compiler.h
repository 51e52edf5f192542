/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SHIM_LINUX_COMPILER_H
#define SHIM_LINUX_COMPILER_H

#define WRITE_ONCE(x, value) ((x) = (value))

#endif
