/* SPDX-License-Identifier: Apache-2.0 */
/* See sys.h. Also the memory routines that the compiler and Zydis call by name. */
#include "agent/sys/sys.h"
#include "agent/tunables.h"
#include <time.h>

/* Below this size a loop is faster than a string instruction, which takes some 30 cycles to start. */
#define SMALL 256

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int value, size_t n);
void *memmove(void *to, const void *from, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (n > SMALL) {
        __asm__ volatile("rep movsb" : "+D"(t), "+S"(f), "+c"(n) : : "memory");
        return to;
    }
    for (; n >= 8; n -= 8, t += 8, f += 8)
        __builtin_memcpy(t, f, 8);
    for (; n > 0; n--) {
        *t++ = *f++;
        __asm__ volatile("" : : : "memory"); /* or the compiler makes it a call to itself */
    }
    return to;
}

void *memset(void *to, int value, size_t n)
{
    unsigned char *t = to;
    if (n > SMALL) {
        __asm__ volatile("rep stosb" : "+D"(t), "+c"(n) : "a"(value) : "memory");
        return to;
    }
    uint64_t eight = 0x0101010101010101ull * (unsigned char)value;
    for (; n >= 8; n -= 8, t += 8)
        __builtin_memcpy(t, &eight, 8);
    for (; n > 0; n--) {
        *t++ = (unsigned char)value;
        __asm__ volatile("" : : : "memory");
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    if ((uintptr_t)to - (uintptr_t)from >= n)
        return memcpy(to, from, n);
    unsigned char *t = to;
    const unsigned char *f = from;
    while (n--) {
        t[n] = f[n];
        __asm__ volatile("" : : : "memory"); /* or the compiler makes it a call to itself */
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n]) {
        n++;
        __asm__ volatile("" : : : "memory");
    }
    return n;
}

/* Zydis refers to this function, but does not call it when built with NDEBUG. */
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
    __attribute__((noreturn));
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    (void)what, (void)file, (void)line, (void)function;
    __builtin_trap();
}

uint64_t sys_clock_ns(int clock_id)
{
    struct timespec ts = {0, 0};
    sys2(SYS_clock_gettime, clock_id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sys_wait_moment(unsigned n)
{
    static const struct timespec moment = {0, LOCK_SLEEP_NS};
    if (n < LOCK_YIELDS)
        sys0(SYS_sched_yield);
    else
        sys2(SYS_nanosleep, &moment, 0);
}

extern const char safe_copy_start[] __attribute__((visibility("hidden")));
extern const char safe_copy_end[] __attribute__((visibility("hidden")));

int safe_copy_recover(uint64_t rip, uint64_t *resume)
{
    if (rip != (uint64_t)safe_copy_start)
        return 0;
    *resume = (uint64_t)safe_copy_end;
    return 1;
}

extern const char safe_probe_read[] __attribute__((visibility("hidden")));
extern const char safe_probe_write[] __attribute__((visibility("hidden")));
extern const char safe_probe_fails[] __attribute__((visibility("hidden")));

int safe_probe_recover(uint64_t rip, uint64_t *resume)
{
    if (rip != (uint64_t)safe_probe_read && rip != (uint64_t)safe_probe_write)
        return 0;
    *resume = (uint64_t)safe_probe_fails;
    return 1;
}
