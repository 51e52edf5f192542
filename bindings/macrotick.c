/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of include/macrotick.h and include/macrotick-express.h as
 * functions of a library, for languages that cannot include the headers:
 *
 *	cc -O2 -shared -fPIC -I include -I kernel/overlay/include/uapi \
 *		-o libmacrotick.so bindings/macrotick.c
 */
#define MACROTICK_API __attribute__((visibility("default")))
#include <macrotick-express.h>
