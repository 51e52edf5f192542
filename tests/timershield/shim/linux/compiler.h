/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SHIM_LINUX_COMPILER_H
#define SHIM_LINUX_COMPILER_H

#define WRITE_ONCE(x, value) ((x) = (value))
#define OPTIMIZER_HIDE_VAR(x) __asm__("" : "+r"(x))
#define noinline __attribute__((__noinline__))

#endif
