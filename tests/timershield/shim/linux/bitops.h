/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SHIM_LINUX_BITOPS_H
#define SHIM_LINUX_BITOPS_H

#define BIT(n) (1UL << (n))

static inline unsigned long __ffs(unsigned long word)
{
	return __builtin_ctzl(word);
}

static inline unsigned long __fls(unsigned long word)
{
	return 8 * sizeof(word) - 1 - __builtin_clzl(word);
}

static inline void __set_bit(unsigned long n, unsigned long *words)
{
	*words |= BIT(n);
}

static inline void __clear_bit(unsigned long n, unsigned long *words)
{
	*words &= ~BIT(n);
}

#endif
