/* SPDX-License-Identifier: Apache-2.0 */
/* One of two libraries that differ in the names of their functions only (dl_calls.c). */
#ifndef NAME
#define NAME(function) function##_one
#endif

static unsigned table[1 << 18];
unsigned walk(unsigned);

static __attribute__((noinline)) unsigned NAME(touch)(unsigned at)
{
    for (int i = 0; i < 3000; i++) {
        at = (at * 1103515245u + 12345u) % (1u << 18);
        at += table[at]++ & 1;
    }
    return at;
}

static __attribute__((noinline)) unsigned NAME(call)(unsigned at)
{
    return NAME(touch)(at % (1u << 18)) + 1;
}

unsigned walk(unsigned at)
{
    return NAME(call)(at) + 2;
}
