/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A library for LD_PRELOAD that delays the thread of QEMU's virtual CPUs after each halt, before it
 * adds the last instructions to the clock. It stands in for a host that is busy at this moment.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <time.h>

/* The longest delay. */
#define LONGEST_NS 300000

typedef void jump(sigjmp_buf, int);

static void delay(void)
{
	static unsigned int seed;
	struct timespec begin, now;
	long left;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!seed)
		seed = begin.tv_nsec;
	left = rand_r(&seed) % LONGEST_NS;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < left);
}

/* QEMU leaves the guest by one of these two. */
__attribute__((noreturn)) void siglongjmp(sigjmp_buf to, int value)
{
	delay();
	((jump *)dlsym(RTLD_NEXT, "siglongjmp"))(to, value);
	__builtin_unreachable();
}

__attribute__((noreturn)) void __longjmp_chk(sigjmp_buf to, int value)
{
	delay();
	((jump *)dlsym(RTLD_NEXT, "__longjmp_chk"))(to, value);
	__builtin_unreachable();
}
