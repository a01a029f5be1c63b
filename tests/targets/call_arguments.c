/* SPDX-License-Identifier: Apache-2.0 */
/* build: -D_GNU_SOURCE -Wno-deprecated-declarations -Wno-nonnull -Wno-stringop-overread -Wno-clobbered -ldl
 */
/*
 * Calls with good and bad arguments, of all functions that the agent interposes and of the system calls that
 * it makes for the target: through libc, through syscall(), by the instruction. Prints what each returned,
 * and what was so afterwards; the same with and without a profiler.
 *
 * call_arguments [threads | fork]   next to another thread; in a forked child
 *
 * A call that faults ends in the program's own handler, which prints signal and address and jumps out.
 *
 * One file, for it is one table: each entry is compared in the same run, with the same set-up.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define BIT(s) (1ull << ((s)-1))
#define AUTODISARM (1u << 31)
#define RESTORER 0x04000000ul

enum form { LIBC, FUNCTION, INSTRUCTION, FORMS };
static const char *const form_name[] = {"libc", "syscall", "insn"};

/* One page each: writable, none, writable, read-only, writable, beyond a file's end, writable, unmapped. */
static char *arena;
#define ARENA_PAGES 8

/* --- where a struct may lie --- */

enum place {
    NOWHERE, /* NULL */
    LOW,     /* 4 */
    KERNEL,  /* an address that no program has */
    WILD,    /* not an address at all */
    GOOD,
    ODD,       /* misaligned */
    FITS,      /* up to the very end of a mapping */
    HALF_NONE, /* its second half on a page of no access */
    HALF_READ, /* ... that can only be read */
    HALF_BUS,  /* ... beyond the end of a file */
    READ_ONLY,
    PLACES
};
static const char *const place_name[] = {"null", "low",       "kernel",    "wild",     "good",    "odd",
                                         "fits", "half-none", "half-read", "half-bus", "readonly"};

static void *at(enum place place, size_t bytes, int second)
{
    char *good = arena + 6 * PAGE + (second ? 1024 : 0);
    switch (place) {
    case LOW:
        return (void *)4;
    case KERNEL:
        return (void *)0xffffffff81000000;
    case WILD:
        return (void *)0x8000000000001000;
    case GOOD:
        return good;
    case ODD:
        return good + 3;
    case FITS:
        return arena + PAGE - bytes;
    case HALF_NONE:
        return arena + PAGE - bytes / 2;
    case HALF_READ:
        return arena + 3 * PAGE - bytes / 2;
    case HALF_BUS:
        return arena + 5 * PAGE - bytes / 2;
    case READ_ONLY:
        return arena + 3 * PAGE + 512;
    default:
        return NULL;
    }
}

/* Fills what of it can be written. */
static void put(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char *p = (char *)to + i;
        if (p < arena || p >= arena + ARENA_PAGES * PAGE || ((size_t)(p - arena) / PAGE) % 2 != 0)
            continue;
        *p = ((const char *)from)[i];
    }
}

/* A checksum of what of it can be read: also what a call that failed has written. */
static unsigned seen(const void *what, size_t bytes)
{
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char *p = (const char *)what + i;
        if (p < arena || p >= arena + ARENA_PAGES * PAGE || ((size_t)(p - arena) / PAGE) % 2 != 0)
            continue;
        sum = sum * 31 + (unsigned char)*p + 1;
    }
    return sum;
}

/* --- calls that may fault --- */

static sigjmp_buf out;
static volatile sig_atomic_t guarded;
static volatile int fault_sig, fault_code;
static char *volatile fault_at;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    fault_sig = sig;
    fault_code = info->si_code;
    fault_at = info->si_addr;
    if (!guarded)
        _exit(99);
    siglongjmp(out, 1);
}

static void print_address(const char *name, const char *p)
{
    if (p >= arena && p < arena + ARENA_PAGES * PAGE)
        printf(" %s=arena+%#lx", name, (unsigned long)(p - arena));
    else if ((unsigned long)p < PAGE || (long)p < 0)
        printf(" %s=%p", name, (const void *)p);
    else
        printf(" %s=elsewhere", name);
}

/* Runs `call`, and prints its outcome. */
#define TRY(call)                     \
    do {                              \
        fault_sig = 0;                \
        errno = 0;                    \
        volatile long result = -99;   \
        if (sigsetjmp(out, 0) == 0) { \
            guarded = 1;              \
            result = (long)(call);    \
        }                             \
        int code = errno;             \
        guarded = 0;                  \
        print_outcome(result, code);  \
    } while (0)

static void print_outcome(long result, int code)
{
    if (fault_sig) {
        printf(" signal %d code %d", fault_sig, fault_code);
        print_address("at", fault_at);
    } else {
        printf(" = %ld errno %d", result, code);
    }
}

static long instruction(long n, long a, long b, long c, long d, long e)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if ((unsigned long)ret < -4095ul)
        return ret;
    errno = (int)-ret;
    return -1;
}

static long make(enum form form, long n, long a, long b, long c, long d, long e)
{
    return form == INSTRUCTION ? instruction(n, a, b, c, d, e) : syscall(n, a, b, c, d, e, 0l);
}

/* Which pairs of places are tried. */
static int is_tried(enum place first, enum place second)
{
    return second == NOWHERE || second == GOOD || second == LOW || first == NOWHERE || first == GOOD ||
           (first == second && first != WILD);
}

/* --- masks --- */

static const uint64_t faults = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGTRAP) | BIT(SIGSYS);

static void reset_mask(uint64_t to)
{
    sigset_t set;
    sigemptyset(&set);
    memcpy(&set, &to, sizeof to);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static void print_mask(void)
{
    uint64_t by_libc, by_function = 0;
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    memcpy(&by_libc, &now, sizeof by_libc);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &by_function, 8l);
    printf(" mask %#llx%s\n", (unsigned long long)by_libc, by_libc == by_function ? "" : " or not");
}

static void try_mask(enum form form, long how, uint64_t set, enum place in, enum place old, size_t size)
{
    static const char pattern[128] = "................................";
    void *new_at = at(in, 8, 0), *old_at = at(old, 8, old != in);
    uint64_t got;
    put(old_at, pattern, in == old ? 8 : 128);
    put(new_at, &set, sizeof set);
    printf("mask %s how %#lx set %#llx %s old %s size %zu:", form_name[form], how, (unsigned long long)set,
           place_name[in], place_name[old], size);
    if (form == LIBC)
        TRY(sigprocmask((int)how, new_at, old_at));
    else
        TRY(make(form, SYS_rt_sigprocmask, how, (long)new_at, (long)old_at, (long)size, 0));
    if (form != INSTRUCTION)
        printf(" wrote %#x", seen(old_at, in == old ? 8 : 128));
    else if (old == GOOD || old == FITS || old == ODD) {
        memcpy(&got, old_at, sizeof got);
        printf(" old %#llx", (unsigned long long)(got & ~faults));
    }
    print_mask();
    reset_mask(0);
}

static void masks(void)
{
    static const long hows[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK, 3, -1, 0x100000001, 0x7fffffff00000002};
    static const uint64_t sets[] = {BIT(SIGUSR1), BIT(SIGTRAP) | BIT(SIGUSR2),
                                    BIT(SIGSYS) | BIT(SIGKILL) | BIT(SIGSTOP) | BIT(40),
                                    BIT(32) | BIT(33) | BIT(SIGHUP)};
    static const size_t sizes[] = {0, 4, 16, 128, 0x100000008};
    for (enum form f = 0; f < FORMS; f++) {
        for (enum place in = 0; in < PLACES; in++)
            for (enum place old = 0; old < PLACES; old++)
                if (is_tried(in, old)) {
                    reset_mask(BIT(SIGUSR2) | BIT(SIGTERM));
                    try_mask(f, SIG_SETMASK, sets[1], in, old, 8);
                }
        for (unsigned h = 0; h < sizeof hows / sizeof *hows; h++)
            for (unsigned s = 0; s < sizeof sets / sizeof *sets; s++)
                for (int old = 0; old < 3; old++) {
                    static const enum place olds[] = {NOWHERE, GOOD, LOW};
                    reset_mask(BIT(SIGUSR1) | BIT(SIGTRAP) * (f != INSTRUCTION));
                    try_mask(f, hows[h], sets[s], GOOD, olds[old], 8);
                    try_mask(f, hows[h], sets[s], NOWHERE, olds[old], 8);
                }
        for (unsigned s = 0; f != LIBC && s < sizeof sizes / sizeof *sizes; s++)
            try_mask(f, SIG_BLOCK, sets[0], GOOD, GOOD, sizes[s]);
    }
    for (enum place in = 0; in < PLACES; in++) { /* glibc copies all of a set that has its own signals */
        reset_mask(BIT(SIGHUP));
        void *set = at(in, 16, 0), *old = at(GOOD, 8, 1);
        put(set, &sets[3], 8);
        printf("pthread_sigmask %s:", place_name[in]);
        TRY(pthread_sigmask(SIG_BLOCK, set, old));
        print_mask();
        printf("pthread_sigmask old %s:", place_name[in]);
        TRY(pthread_sigmask(SIG_UNBLOCK, old, set));
        print_mask();
        reset_mask(0);
    }
    printf("number with an upper half:");
    uint64_t set = BIT(SIGUSR1);
    TRY(syscall(0x100000000l | SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8l));
    print_mask();
    reset_mask(0);
}

/* A signal that waits comes in during the call that unblocks it: what the call writes is there by then. */
static uint64_t *volatile unblocked_old;
static volatile uint64_t told_in_handler;
static void on_unblocked(int sig)
{
    (void)sig;
    told_in_handler = *unblocked_old;
    siglongjmp(out, 1);
}

static void unblocking(void)
{
    struct sigaction act = {.sa_handler = on_unblocked, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &act, NULL);
    for (enum form f = 0; f < FORMS; f++) {
        uint64_t set = BIT(SIGUSR1) | BIT(SIGUSR2) | (f == INSTRUCTION ? 0 : BIT(SIGTRAP));
        reset_mask(set);
        unblocked_old = at(GOOD, 8, 1);
        *unblocked_old = 0;
        told_in_handler = 1;
        raise(SIGUSR1);
        uint64_t *one = at(GOOD, 8, 0);
        *one = BIT(SIGUSR1);
        printf("unblocking by %s:", form_name[f]);
        if (sigsetjmp(out, 0) == 0) {
            if (f == LIBC)
                sigprocmask(SIG_UNBLOCK, (void *)one, (void *)unblocked_old);
            else
                make(f, SYS_rt_sigprocmask, SIG_UNBLOCK, (long)one, (long)unblocked_old, 8, 0);
            printf(" not in time");
        }
        printf(" handler saw %#llx",
               (unsigned long long)(told_in_handler & ~(f == INSTRUCTION ? faults : 0)));
        print_mask();
        reset_mask(0);
    }
    signal(SIGUSR1, SIG_DFL);
}

/* --- alternate stacks --- */

static char stack_a[64 * 1024], stack_b[32 * 1024];

static void print_stack(const stack_t *s)
{
    printf(" %s %zu %#x",
           s->ss_sp == stack_a   ? "a"
           : s->ss_sp == stack_b ? "b"
           : s->ss_sp            ? "other"
                                 : "none",
           s->ss_size, (unsigned)s->ss_flags);
}

static void print_altstack(void)
{
    stack_t now;
    memset(&now, 0xff, sizeof now);
    printf(" stack");
    if (sigaltstack(NULL, &now) == 0)
        print_stack(&now);
    memset(&now, 0xff, sizeof now);
    if (syscall(SYS_sigaltstack, NULL, &now) == 0)
        print_stack(&now);
    puts("");
}

static void try_altstack(enum form form, const stack_t *new, enum place in, enum place old)
{
    static const char pattern[sizeof(stack_t)] = "......................";
    void *new_at = at(in, sizeof *new, 0), *old_at = at(old, sizeof *new, old != in);
    put(old_at, pattern, sizeof pattern);
    put(new_at, new, sizeof *new);
    printf("altstack %s new %s size %zu flags %#x old %s:", form_name[form], place_name[in], new->ss_size,
           (unsigned)new->ss_flags, place_name[old]);
    if (form == LIBC)
        TRY(sigaltstack(new_at, old_at));
    else
        TRY(make(form, SYS_sigaltstack, (long)new_at, (long)old_at, 0, 0, 0));
    if (form != INSTRUCTION && !((old == ODD || old == GOOD) && seen(old_at, sizeof *new) == 0)) {
        stack_t got;
        if (old == GOOD || old == FITS || old == ODD) {
            memcpy(&got, old_at, sizeof got);
            print_stack(&got);
        }
    }
    print_altstack();
}

static volatile int on_altstack_result;
static void on_altstack(int sig)
{
    stack_t now, b = {stack_b, 0, sizeof stack_b};
    (void)sig;
    printf("on the stack:");
    TRY(sigaltstack(&b, NULL));
    sigaltstack(NULL, &now);
    print_stack(&now);
    TRY(syscall(SYS_sigaltstack, &b, NULL));
    TRY(sigaltstack(NULL, (stack_t *)4));
    char here;
    printf(" %s\n", &here >= stack_a && &here < stack_a + sizeof stack_a   ? "a"
                    : &here >= stack_b && &here < stack_b + sizeof stack_b ? "b"
                                                                           : "elsewhere");
}

static void altstacks(void)
{
    static const stack_t off = {.ss_flags = SS_DISABLE};
    static const stack_t tried[] = {
        {stack_a, 0, sizeof stack_a},
        {stack_b, SS_ONSTACK, 2048},
        {stack_a, 0, 2047},
        {stack_a, 3, sizeof stack_a},
        {stack_a, 0x100, sizeof stack_a},
        {stack_a, SS_DISABLE, 5},
        {stack_b, (int)(AUTODISARM | SS_DISABLE), 5},
        {stack_b, (int)AUTODISARM, sizeof stack_b},
        {NULL, 0, sizeof stack_a},
    };
    struct sigaction act = {.sa_handler = on_altstack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &act, NULL);
    for (enum form f = 0; f < FORMS; f++) {
        for (enum place in = 0; in < PLACES; in++)
            for (enum place old = 0; old < PLACES; old++)
                if (is_tried(in, old)) {
                    stack_t a = {stack_a, 0, sizeof stack_a}, b = {stack_b, 0, sizeof stack_b};
                    sigaltstack(&b, NULL);
                    try_altstack(f, &a, in, old);
                }
        for (unsigned i = 0; i < sizeof tried / sizeof *tried; i++)
            for (int old = 0; old < 3; old++) {
                static const enum place olds[] = {NOWHERE, GOOD, LOW};
                /* Set by an instruction in native execution, the agent's signals arrive there, too, and kill
                 * (docs/agent-rules.md). */
                if (f == INSTRUCTION && (!tried[i].ss_sp || i == 1))
                    continue;
                sigaltstack(&off, NULL);
                try_altstack(f, &tried[i], GOOD, olds[old]);
                try_altstack(f, &tried[i], GOOD, olds[old]);
                if (tried[i].ss_sp && i != 1) /* 2048 bytes are too few for this handler */
                    raise(SIGUSR1);
            }
    }
    sigaltstack(&off, NULL);
    signal(SIGUSR1, SIG_DFL);
}

/* --- dispositions --- */

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static volatile int handled;
static void first(int sig)
{
    handled = sig;
}
static void second(int sig)
{
    handled = -sig;
}

static const char *handler_name(void *h)
{
    return h == (void *)SIG_DFL    ? "default"
           : h == (void *)SIG_IGN  ? "ignore"
           : h == (void *)SIG_ERR  ? "error"
           : h == (void *)SIG_HOLD ? "hold"
           : h == (void *)first    ? "first"
           : h == (void *)second   ? "second"
                                   : "other";
}

static void print_action(int sig)
{
    struct sigaction now;
    struct kernel_action same;
    uint64_t mask;
    if (sig == 32 || sig == 33) { /* libc's own, once there are threads */
        puts("");
        return;
    }
    memset(&now, 0, sizeof now);
    if (sigaction(sig, NULL, &now))
        printf(" errno %d", errno);
    memcpy(&mask, &now.sa_mask, sizeof mask);
    printf(" is %s %#lx %#llx", handler_name((void *)now.sa_handler),
           (unsigned long)now.sa_flags & 0xffffffff & ~RESTORER, (unsigned long long)mask);
    memset(&same, 0, sizeof same);
    if (syscall(SYS_rt_sigaction, sig, NULL, &same, 8l))
        printf(" errno %d", errno);
    printf(" is %s %#lx %#llx", handler_name(same.handler), same.flags & ~RESTORER,
           (unsigned long long)same.mask);
    puts("");
}

static void set_action(int sig, void (*handler)(int), int flags)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    sigaddset(&act.sa_mask, SIGUSR2);
    sigaction(sig, &act, NULL);
}

extern const char restore_frame[];
__asm__("restore_frame: mov $15, %eax\n syscall\n");

static void try_action(enum form form, int sig, void *handler, unsigned long flags, enum place in,
                       enum place old, size_t size)
{
    static const char pattern[sizeof(struct sigaction)] = "................................";
    struct sigaction act;
    struct kernel_action raw = {handler, flags | RESTORER, (void *)restore_frame,
                                BIT(SIGTERM) | BIT(SIGKILL) | BIT(SIGTRAP)};
    size_t bytes = form == LIBC ? sizeof act : sizeof raw;
    void *new_at = at(in, bytes, 0), *old_at = at(old, bytes, old != in);
    memset(&act, 0, sizeof act);
    act.sa_handler = (void (*)(int))handler;
    act.sa_flags = (int)flags;
    memcpy(&act.sa_mask, &raw.mask, sizeof raw.mask);
    put(old_at, pattern, bytes);
    put(new_at, form == LIBC ? (void *)&act : (void *)&raw, bytes);
    printf("action %s %d %s %#lx %s old %s size %zu:", form_name[form], sig, handler_name(handler), flags,
           place_name[in], place_name[old], size);
    if (form == LIBC)
        TRY(sigaction(sig, new_at, old_at));
    else
        TRY(make(form, SYS_rt_sigaction, sig, (long)new_at, (long)old_at, (long)size, 0));
    if (form != INSTRUCTION && (old == GOOD || old == FITS || old == ODD)) {
        void *got;
        memcpy(&got, old_at, sizeof got);
        printf(" old %s", handler_name(got));
    }
    print_action(sig);
}

/* That a handler runs, and what it is masked by meanwhile. */
static void send(int sig)
{
    handled = 0;
    raise(sig);
    printf("sent %d: handled %d", sig, handled);
    print_action(sig);
}

static void actions(void)
{
    static const int sigs[] = {0,  -1, SIGKILL, SIGSTOP, 32,     33,     34,
                               64, 65, SIGCHLD, SIGTRAP, SIGSYS, SIGFPE, SIGUSR1};
    static const unsigned long flags[] = {
        SA_RESTART | SA_SIGINFO,     0x400,       0x80, 0x800, SA_NODEFER | 0x7f0000,
        SA_NOCLDSTOP | SA_NOCLDWAIT, SA_RESETHAND};
    for (enum form f = 0; f < FORMS; f++) {
        for (int sig = 0; sig < 2; sig++)
            for (enum place in = 0; in < PLACES; in++)
                for (enum place old = 0; old < PLACES; old++)
                    if (is_tried(in, old)) {
                        int number = sig ? SIGUSR1 : f == INSTRUCTION ? SIGFPE : SIGTRAP;
                        set_action(number, old % 2 ? SIG_DFL : second, SA_RESTART);
                        try_action(f, number, (void *)first, SA_NODEFER, in, old, 8);
                    }
        for (unsigned s = 0; s < sizeof sigs / sizeof *sigs; s++)
            for (int old = 0; old < 3; old++) {
                static const enum place olds[] = {NOWHERE, GOOD, LOW};
                if (f != LIBC && (sigs[s] == 32 || sigs[s] == 33)) /* libc's own: not to be disturbed */
                    continue;
                /* The agent's, which an instruction takes from it: see "Known gaps" in docs/agent-rules.md.
                 */
                if (f == INSTRUCTION && (sigs[s] == SIGTRAP || sigs[s] == SIGSYS))
                    continue;
                try_action(f, sigs[s], (void *)SIG_IGN, SA_RESTART, GOOD, olds[old], 8);
                try_action(f, sigs[s], (void *)first, SA_NODEFER, GOOD, olds[old], 8);
                try_action(f, sigs[s], (void *)SIG_DFL, 0, NOWHERE, olds[old], 8);
                try_action(f, sigs[s], (void *)SIG_DFL, SA_ONSTACK, GOOD, olds[old], 8);
            }
        for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
            for (int sig = 0; sig < 2; sig++) {
                int number = sig ? SIGUSR1 : SIGFPE;
                try_action(f, number, (void *)first, flags[i], GOOD, GOOD, 8);
                send(number);
                signal(number, SIG_DFL);
            }
        for (size_t size = 0; f != LIBC && size < 20; size += 4) {
            try_action(f, SIGUSR1, (void *)first, 0, GOOD, GOOD, size);
            try_action(f, SIGUSR1, (void *)first, 0, LOW, LOW, size);
        }
        try_action(f, SIGUSR1, (void *)second, SA_NODEFER, GOOD, LOW,
                   8); /* fails, or faults; and has its effect */
        send(SIGUSR1);
        signal(SIGUSR1, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
    }
    /* Saved by one way, put back by another. */
    for (int sig = 0; sig < 2; sig++) {
        struct kernel_action saved;
        int number = sig ? SIGUSR2 : SIGFPE;
        set_action(number, first, SA_RESTART);
        make(FUNCTION, SYS_rt_sigaction, number, 0, (long)&saved, 8, 0);
        signal(number, SIG_IGN);
        make(FUNCTION, SYS_rt_sigaction, number, (long)&saved, 0, 8, 0);
        printf("put back by syscall: ");
        send(number);
        make(INSTRUCTION, SYS_rt_sigaction, number, 0, (long)&saved, 8, 0);
        make(FUNCTION, SYS_rt_sigaction, number, (long)&saved, 0, 8, 0);
        printf("put back by syscall, saved by insn: ");
        send(number);
        signal(number, SIG_DFL);
    }
}

typedef void (*handler)(int);
extern handler bsd_signal(int, handler), sysv_signal(int, handler);

static void relatives(void)
{
    static const int sigs[] = {0, -1, SIGKILL, SIGSTOP, 32, 33, 34, 64, 65, SIGTRAP, SIGUSR1};
    static handler (*const functions[])(int, handler) = {signal, bsd_signal, ssignal, sysv_signal, sigset};
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
        for (unsigned s = 0; s < sizeof sigs / sizeof *sigs; s++)
            for (int h = 0; h < (functions[i] == sigset ? 7 : 4); h++) {
                handler handlers[] = {SIG_IGN, first, SIG_ERR, SIG_HOLD, SIG_HOLD, second, SIG_DFL};
                if (functions[i] != sigset)
                    handlers[3] = SIG_DFL;
                errno = 0;
                handler before = functions[i](sigs[s], handlers[h]);
                int code = errno;
                printf("relative %u %d %s: %s errno %d", i, sigs[s], handler_name((void *)handlers[h]),
                       handler_name((void *)before), code);
                print_action(sigs[s]);
                if (functions[i] == sigset)
                    print_mask();
            }
    for (unsigned s = 0; s < sizeof sigs / sizeof *sigs; s++) {
        printf("sigignore %d:", sigs[s]);
        TRY(sigignore(sigs[s]));
        print_action(sigs[s]);
        signal(sigs[s], SIG_DFL);
    }
    for (unsigned s = 0; s < sizeof sigs / sizeof *sigs; s++)
        for (int on = 0; on < 3; on++) {
            printf("siginterrupt %d %d:", sigs[s], on);
            TRY(siginterrupt(sigs[s], on));
            print_action(sigs[s]);
        }
}

/* --- mappings --- */

/* Eight pages, with one missing, and room after them; made anew for each call. */
#define ROOM_PAGES 24
static char *playground;

static void map_playground(void)
{
    playground = mmap(playground, ROOM_PAGES * PAGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (playground ? MAP_FIXED : 0), -1, 0);
    mprotect(playground, 8 * PAGE, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 8; i++)
        playground[(size_t)i * PAGE] = (char)(i + 1);
    munmap(playground + 5 * PAGE, PAGE);
}

/* Rights and contents. */
static void print_playground(void)
{
    static char text[1 << 16];
    size_t have = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY);
    while ((got = read(fd, text + have, sizeof text - 1 - have)) > 0)
        have += (size_t)got;
    close(fd);
    text[have] = 0;
    char rights[9] = "........";
    for (char *line = text, *end; *line; line = end + (*end != 0)) {
        char *r;
        end = strchrnul(line, '\n');
        unsigned long from = strtoul(line, &r, 16), to = strtoul(r + 1, &r, 16);
        r++;
        for (int i = 0; i < 8; i++) {
            unsigned long p = (unsigned long)playground + (unsigned long)i * PAGE;
            if (p >= from && p < to)
                rights[i] = (char)('0' + (r[0] == 'r') + 2 * (r[1] == 'w') + 4 * (r[2] == 'x'));
        }
    }
    printf(" rights %s holds", rights);
    for (int i = 0; i < 8; i++)
        if (rights[i] & 1 && rights[i] != '.')
            printf(" %d", playground[(size_t)i * PAGE]);
    puts("");
}

static void try_mapping(enum form form, const char *name, long n, long a, long b, long c, long d, long e)
{
    map_playground();
    printf("%s %s %lx %lx %lx %lx %lx:", name, form_name[form], a ? a - (long)playground : 0, b, c, d,
           e > 0 ? e - (long)playground : e);
    if (form == LIBC && n == SYS_mprotect)
        TRY(mprotect((void *)a, (size_t)b, (int)c));
    else if (form == LIBC && n == SYS_munmap)
        TRY(munmap((void *)a, (size_t)b));
    else if (form == LIBC && n == SYS_madvise)
        TRY(madvise((void *)a, (size_t)b, (int)c));
    else if (form == LIBC && n == SYS_mremap)
        TRY((long)mremap((void *)a, (size_t)b, (size_t)c, (int)d, (void *)e) == -1 ? -1 : 0);
    else if (n == SYS_mremap || n == SYS_mmap)
        TRY(make(form, n, a, b, c, d, e) == -1 ? -1 : 0);
    else
        TRY(make(form, n, a, b, c, d, e));
    print_playground();
}

static void mappings(void)
{
    static const long lengths[] = {0, 1, (long)PAGE, (long)(3 * PAGE), (long)(8 * PAGE), -1, 1l << 47};
    map_playground();
    long base = (long)playground;
    for (enum form f = 0; f < FORMS; f++)
        for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            static const long rights[] = {PROT_READ, PROT_NONE, 0x80, PROT_READ | PROT_GROWSDOWN,
                                          PROT_GROWSDOWN | PROT_GROWSUP};
            for (unsigned r = 0; r < sizeof rights / sizeof *rights; r++) {
                try_mapping(f, "mprotect", SYS_mprotect, base + 3 * (long)PAGE, lengths[i], rights[r], 0, 0);
                try_mapping(f, "mprotect", SYS_mprotect, base + 1, lengths[i], rights[r], 0, 0);
            }
            for (int odd = 0; odd < 2; odd++) {
                if (lengths[i] >= -1 && lengths[i] <= (long)(8 * PAGE))
                    try_mapping(f, "munmap", SYS_munmap, base + odd + (odd ? 0 : 3 * (long)PAGE),
                                i == 4 ? 5 * (long)PAGE : lengths[i], 0, 0, 0);
                if (lengths[i] >= 0 && lengths[i] <= (long)(8 * PAGE)) {
                    try_mapping(f, "madvise", SYS_madvise, base + 3 * (long)PAGE + odd,
                                i == 4 ? 5 * (long)PAGE : lengths[i], MADV_DONTNEED, 0, 0);
                    try_mapping(f, "madvise", SYS_madvise, base + 3 * (long)PAGE + odd, lengths[i], 9999, 0,
                                0);
                }
                try_mapping(f, "mremap", SYS_mremap, base + odd, 2 * (long)PAGE, lengths[i],
                            MREMAP_MAYMOVE | MREMAP_FIXED, base + 6 * (long)PAGE);
                try_mapping(f, "mremap", SYS_mremap, base + odd, 2 * (long)PAGE, lengths[i],
                            MREMAP_MAYMOVE | MREMAP_FIXED, base + (long)PAGE);
                try_mapping(f, "mremap", SYS_mremap, base, 2 * (long)PAGE, lengths[i] & 0xffff, odd ? 8 : 0,
                            0);
            }
            if (f != LIBC && lengths[i] >= 0) {
                try_mapping(f, "mmap", SYS_mmap, base + 2 * (long)PAGE, lengths[i] & 0xffff, PROT_READ,
                            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1);
                try_mapping(f, "mmap", SYS_mmap, base + 2 * (long)PAGE, (long)PAGE, PROT_READ,
                            MAP_FIXED | MAP_PRIVATE, -1);
            }
        }
}

/* --- other calls with memory --- */

static void memory_call(enum form f, enum place p, const char *name, size_t bytes, long n, int argument,
                        const long *args)
{
    long a[5];
    void *where = at(p, bytes, 0);
    char zeros[512] = {0};
    memcpy(a, args, sizeof a);
    a[argument] = (long)where;
    put(where, zeros, bytes);
    printf("%s %s %s:", name, form_name[f], place_name[p]);
    TRY(make(f, n, a[0], a[1], a[2], a[3], a[4]));
    if (n == SYS_uname || n == SYS_pipe2 || n == SYS_rt_sigpending || n == SYS_prctl || n == SYS_read)
        printf(" wrote %#x", n == SYS_uname ? 0 : seen(where, bytes));
    puts("");
}

static void memory_calls(void)
{
    int ends[2], null = open("/dev/null", O_WRONLY);
    static const uint64_t none = 0;
    static const struct timespec at_once = {0, 1};
    static const struct timespec odd_time = {0, 2000000000};
    if (pipe(ends) || null < 0)
        return;
    for (enum form f = FUNCTION; f < FORMS; f++)
        for (enum place p = 0; p < PLACES; p++) {
            const struct {
                const char *name;
                size_t bytes;
                long n;
                int argument;
                long args[5];
            } calls[] = {
                {"rt_sigpending", 8, SYS_rt_sigpending, 0, {0, 8}},
                {"rt_sigpending", 4, SYS_rt_sigpending, 0, {0, 4}},
                {"rt_sigpending", 16, SYS_rt_sigpending, 0, {0, 16}},
                {"rt_sigtimedwait", 8, SYS_rt_sigtimedwait, 0, {0, 0, (long)&at_once, 8}},
                {"rt_sigtimedwait", 16, SYS_rt_sigtimedwait, 2, {(long)&none, 0, (long)&odd_time, 4}},
                {"rt_sigsuspend", 8, SYS_rt_sigsuspend, 0, {0, 4}},
                {"ppoll", 8, SYS_ppoll, 3, {0, 0, (long)&at_once, 0, 8}},
                {"ppoll", 8, SYS_ppoll, 3, {0, 0, (long)&at_once, 0, 4}},
                {"ppoll", 8, SYS_ppoll, 0, {0, 1, (long)&at_once, 0, 8}},
                {"nanosleep", 16, SYS_nanosleep, 0, {0, 0}},
                {"clock_gettime", 16, SYS_clock_gettime, 1, {CLOCK_MONOTONIC}},
                {"clock_gettime", 16, SYS_clock_gettime, 1, {9999}},
                {"uname", 390, SYS_uname, 0, {0}},
                {"pipe2", 8, SYS_pipe2, 0, {0, 0x7fffffff}},
                {"getrandom", 64, SYS_getrandom, 0, {0, 64, 0}},
                {"getrandom", 64, SYS_getrandom, 0, {0, 64, 0x100}},
                {"write", 64, SYS_write, 1, {ends[1], 0, 64}},
                {"write to null", 64, SYS_write, 1, {null, 0, 64}},
                {"getcwd", 4, SYS_getcwd, 0, {0, 1}},
                {"futex", 4, SYS_futex, 0, {0, FUTEX_WAIT, 1, 0}},
                {"prctl get name", 16, SYS_prctl, 1, {PR_GET_NAME}},
                {"prctl get pdeathsig", 4, SYS_prctl, 1, {PR_GET_PDEATHSIG}},
                {"prctl seccomp filter", 16, SYS_prctl, 1, {PR_SET_SECCOMP, 77}},
                {"clone3", 88, SYS_clone3, 0, {0, 8}},
                {"clone3", 88, SYS_clone3, 0, {0, 1l << 20}},
                {"execve", 8, SYS_execve, 0, {0, 0, 0}},
                {"setitimer", 32, SYS_setitimer, 2, {77, 0, 0}},
                {"sched_getaffinity", 8, SYS_sched_getaffinity, 2, {0, 4}},
            };
            for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
                memory_call(f, p, calls[i].name, calls[i].bytes, calls[i].n, calls[i].argument,
                            calls[i].args);
            void *where = at(p, 64, 0);
            printf("read %s %s:", form_name[f], place_name[p]);
            char full[64] = "written before the bad pointer was";
            if (write(ends[1], full, sizeof full) != sizeof full)
                puts("?");
            TRY(make(f, SYS_read, ends[0], (long)where, 64, 0, 0));
            puts("");
            fcntl(ends[0], F_SETFL, O_NONBLOCK);
            while (read(ends[0], full, sizeof full) > 0)
                ;
            fcntl(ends[0], F_SETFL, 0);
        }
    close(ends[0]), close(ends[1]), close(null);
    for (enum form f = 0; f < FORMS; f++) {
        static const long tried[][3] = {{-1, 0, 0},
                                        {9999, 1, 2},
                                        {PR_SET_NAME, 4, 0},
                                        {PR_GET_NAME, 4, 0},
                                        {PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0},
                                        {PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 4},
                                        {PR_GET_TSC, 4, 0},
                                        {PR_SET_TSC, 99, 0},
                                        {PR_SET_DUMPABLE, 77, 0},
                                        {PR_SET_PDEATHSIG, 65, 0},
                                        {PR_GET_DUMPABLE, 0, 0}};
        for (unsigned i = 0; i < sizeof tried / sizeof *tried; i++) {
            printf("prctl %s %ld %lx %lx:", form_name[f], tried[i][0], tried[i][1], tried[i][2]);
            if (f == LIBC)
                TRY(prctl((int)tried[i][0], tried[i][1], tried[i][2], 0l, 0l));
            else
                TRY(make(f, SYS_prctl, tried[i][0], tried[i][1], tried[i][2], 0, 0));
            puts("");
        }
    }
    printf("seccomp question:");
    TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0l, (void *)4));
    TRY(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0l, (void *)4));
    TRY(syscall(-1l));
    TRY(syscall(100000l));
    puts("");
}

/* --- threads, processes, programs --- */

static void *thread_routine(void *argument)
{
    return argument;
}
static int c11_routine(void *argument)
{
    (void)argument;
    return 7;
}
static int clone_routine(void *argument)
{
    (void)argument;
    return 3;
}

/* How a child that does it ends. */
#define CHILD(what)                                                           \
    do {                                                                      \
        fflush(stdout);                                                       \
        int status = 0;                                                       \
        pid_t child = fork();                                                 \
        if (child == 0) {                                                     \
            signal(SIGSEGV, SIG_DFL);                                         \
            what;                                                             \
            _exit(42);                                                        \
        }                                                                     \
        waitpid(child, &status, 0);                                           \
        printf(" %s %d\n", WIFSIGNALED(status) ? "killed by" : "exits with",  \
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)); \
    } while (0)

static void threads_and_processes(void)
{
    static char *const arguments[] = {(char *)"true", NULL};
    static char *const environment[] = {(char *)"A=b", NULL};
    for (enum place p = 0; p < PLACES; p++) {
        pthread_t *id = at(p, sizeof *id, 0);
        void *returned = NULL;
        printf("pthread_create id %s:", place_name[p]);
        TRY(pthread_create(id, NULL, thread_routine, &returned));
        if (!fault_sig) {
            pthread_t copy;
            memcpy(&copy, id, sizeof copy);
            pthread_join(copy, &returned);
            printf(" joined %d", returned == &returned);
        }
        puts("");
        printf("thrd_create id %s:", place_name[p]);
        TRY(thrd_create((thrd_t *)id, c11_routine, NULL));
        if (!fault_sig) {
            thrd_t copy;
            int status = 0;
            memcpy(&copy, id, sizeof copy);
            thrd_join(copy, &status);
            printf(" joined %d", status);
        }
        puts("");
        if (p == GOOD || p == ODD || p == FITS)
            continue;
        pthread_t made;
        printf("pthread_create attributes %s:", place_name[p]);
        if (p != NOWHERE && p < HALF_NONE)
            TRY(pthread_create(&made, at(p, sizeof(pthread_attr_t), 0), thread_routine, NULL));
        puts("");
        printf("clone stack %s:", place_name[p]);
        if (p != READ_ONLY && p < HALF_NONE)
            TRY(clone(clone_routine, at(p, 16, 0), SIGCHLD, NULL));
        TRY(clone(NULL, stack_a + 4096, SIGCHLD, NULL));
        puts("");
        for (int s = 0; s < 3; s++) {
            const char *path = "/bin/true";
            void *bad = at(p, 16, 0), *args = s == 1 ? bad : (void *)arguments,
                 *env = s == 2 ? bad : (void *)environment;
            const char *file = s == 0 ? bad : path;
            if (p == NOWHERE && s)
                continue;
            if (p >= HALF_NONE && s == 0)
                memset(arena + PAGE - 8, 'x', 8), memset(arena + 3 * PAGE - 8, 'x', 8),
                    memset(arena + 5 * PAGE - 8, 'x', 8);
            else
                memset(arena + PAGE - 8, 1, 8), memset(arena + 3 * PAGE - 8, 1, 8),
                    memset(arena + 5 * PAGE - 8, 1, 8);
            if (p == READ_ONLY || p == HALF_READ)
                continue;
            printf("exec %d %s:", s, place_name[p]);
            TRY(execve(file, args, env));
            TRY(execveat(AT_FDCWD, file, args, env, 0));
            TRY(syscall(SYS_execve, file, args, env));
            TRY(syscall(SYS_execveat, AT_FDCWD, file, args, env, 0));
            TRY(instruction(SYS_execve, (long)file, (long)args, (long)env, 0, 0));
            TRY(fexecve(-1, args, env));
            if (s != 2)
                TRY(execv(file, args));
            if (s == 0) {
                TRY(execvp(file, args));
                TRY(execlp(file, "a", NULL));
                TRY(execl(file, "a", "b", NULL));
                TRY(execle(file, "a", NULL, environment));
            }
            puts("");
        }
    }
    printf("clone flags:");
    TRY(clone(clone_routine, stack_a + sizeof stack_a, CLONE_SIGHAND | SIGCHLD, NULL));
    TRY(make(FUNCTION, SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
    TRY(make(INSTRUCTION, SYS_clone, CLONE_FS | CLONE_NEWNS, 0, 0, 0, 0));
    puts("");
    printf("clone:");
    CHILD(int status; pid_t c = clone(clone_routine, stack_a + sizeof stack_a, SIGCHLD, NULL);
          waitpid(c, &status, 0); _exit(WEXITSTATUS(status)));
    printf("routine null:");
    CHILD(pthread_t id; pthread_create(&id, NULL, NULL, NULL); pthread_join(id, NULL));
    printf("sigreturn with a bad frame, by instruction:");
    CHILD(__asm__ volatile("mov $4, %%rsp\n mov $15, %%eax\n syscall" ::: "rax", "memory"));
    printf("sigreturn by syscall:");
    CHILD(syscall(SYS_rt_sigreturn));
    printf("blocked fault:");
    CHILD(reset_mask(BIT(SIGSEGV)); sigaction(SIGUSR1, (void *)4, NULL));
    printf("sigaction of a bad pointer, by default:");
    CHILD(sigaction(SIGUSR1, (void *)4, NULL));
    printf("no restorer:");
    CHILD(struct kernel_action raw; memset(&raw, 0, sizeof raw); raw.handler = (void *)first;
          syscall(SYS_rt_sigaction, SIGUSR1, &raw, NULL, 8l); raise(SIGUSR1));
    printf("executed:");
    CHILD(execve("/bin/true", arguments, environment));
    printf("executed after a failure:");
    CHILD(execve("/bin/true", (void *)4, environment); execve("/bin/true", arguments, environment));
    printf("dlclose:");
    for (enum place p = 0; p < READ_ONLY; p++)
        if (p == NOWHERE || p == LOW || p == WILD || p == KERNEL)
            TRY(dlclose(at(p, 0, 0)));
    puts("");
}

/* --- */

static volatile int stop;
static volatile unsigned long work[4096];

static void *other(void *argument)
{
    for (unsigned long i = 0; !stop; i++) {
        work[i % 4096] += i;
        if (i % 50000 == 0)
            usleep(100);
    }
    return argument;
}

int main(int argc, char **argv)
{
    static char output[1 << 16];
    char name[] = "/tmp/call-arguments-XXXXXX";
    int fd = mkstemp(name), threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    pthread_t id;
    unlink(name);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    arena = mmap(NULL, ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(arena + PAGE, PAGE, PROT_NONE);
    mprotect(arena + 3 * PAGE, PAGE, PROT_READ);
    mmap(arena + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, fd, 0);
    munmap(arena + 7 * PAGE, PAGE);
    close(fd);
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        int status = 0;
        pid_t child = fork();
        if (child != 0) {
            waitpid(child, &status, 0);
            return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    if (threads)
        pthread_create(&id, NULL, other, NULL);
    masks();
    unblocking();
    altstacks();
    actions();
    relatives();
    mappings();
    memory_calls();
    threads_and_processes();
    stop = 1;
    if (threads)
        pthread_join(id, NULL);
    puts("end");
    return 0;
}
