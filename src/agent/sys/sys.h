/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - raw system calls and a few memory routines. The agent calls no libc function once the target runs:
 * libc may lock, allocate, or set errno, and a signal may have interrupted the target in any of that.
 */
#ifndef CACHEGRAM_AGENT_SYS_H
#define CACHEGRAM_AGENT_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#define sys0(n) sys6((n), 0, 0, 0, 0, 0, 0)
#define sys1(n, a) sys6((n), (long)(a), 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys6((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define sys3(n, a, b, c) sys6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(n, a, b, c, d) sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int sys_failed(long ret)
{
    return (unsigned long)ret >= (unsigned long)-4095l;
}

uint64_t sys_clock_ns(int clock_id);

/* Waits for something that takes moments, for the nth time. By giving up the processor at first; then by
 * sleeping: while a thread of a higher real-time priority only yields, one on its processor that holds the
 * lock never runs. */
void sys_wait_moment(unsigned n);

/* A lock that is held for moments; 0: free. */
static inline void spin_lock(int *lock)
{
    for (unsigned n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); n++)
        sys_wait_moment(n);
}
static inline void spin_unlock(int *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Copies memory that may be inaccessible. Returns the number of bytes that could NOT be copied (0: all
 * copied). The fault handler resumes it (safe_copy_recover). */
size_t safe_copy(void *to, const void *from, size_t bytes);
/* 0: the byte there can be read, or written (it is not changed). A protected page is not unprotected for it.
 */
size_t safe_probe(const void *address, int write);
/* For the fault handler: nonzero if rip is in safe_copy; *resume is where to continue. */
int safe_copy_recover(uint64_t rip, uint64_t *resume);
int safe_probe_recover(uint64_t rip, uint64_t *resume); /* the same for safe_probe */

#endif
