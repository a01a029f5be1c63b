/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: faults that the program handles, signals that it sends itself, masks, stacks, jumps. */
#include "../hunt.h"

/* hunt: leaf */
static void just_work(struct run *r, int units /* 5..40 */)
{
    work(r, units);
    note(r, "sum %llx\n", (unsigned long long)memories[r->id].sum);
}

/* A collector's write barrier: pages are made read-only, and writable again by the fault. */
static struct {
    struct run *r;
    uint8_t *at;
    volatile int faults, wrong, jump, inside;
    sigjmp_buf env;
} barrier_;

static void barrier_fault(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
    if (at - (uintptr_t)barrier_.at >= 8 * PAGE || info->si_code != SEGV_ACCERR) {
        barrier_.wrong++;
        _exit(77);
    }
    barrier_.faults++;
    if (barrier_.inside)
        work(barrier_.r, 1);
    mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE);
    if (barrier_.jump)
        siglongjmp(barrier_.env, 1);
}

/* hunt: leaf claims FAULTS not blocked */
static void barrier(struct run *r, int rounds /* 3..20 */, int flags /* 0 SA_ONSTACK SA_NODEFER */,
                    int mask /* 0..2 */, int jump /* 0..1 */, int inside /* 0..1 */)
{
    struct sigaction old;
    stack_t before;
    void *stack = altstack(&before, 0);
    barrier_.r = r, barrier_.jump = jump, barrier_.inside = inside, barrier_.faults = 0;
    barrier_.at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, barrier_fault, flags, mask, &old);
    for (volatile int round = 0; round < rounds; round++) {
        mprotect(barrier_.at, 8 * PAGE, round % 3 == 2 ? PROT_NONE : PROT_READ);
        work(r, 1);
        for (volatile int i = 0; i < 8; i++) {
            if (jump)
                (void)sigsetjmp(barrier_.env, 1);
            barrier_.at[i * PAGE + round]++;
            barrier_.at[i * PAGE + round + 1]++;
        }
    }
    sigaction(SIGSEGV, &old, NULL);
    munmap(barrier_.at, 8 * PAGE);
    altstack_back(stack, &before);
    note(r, "barrier %d\n", barrier_.faults);
}

/* Each synchronous fault, stepped over by the handler or jumped out of. */
static struct {
    volatile int count, code, leave;
    sigjmp_buf env;
    void *volatile resume;
} fault_;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    fault_.count++;
    fault_.code = info->si_code;
    if (fault_.leave)
        siglongjmp(fault_.env, 1);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fault_.resume;
}

static __attribute__((noinline)) void make_fault(int sig, void *bad)
{
    unsigned long dummy = 1;
    switch (sig) {
    case SIGFPE:
        __asm__ volatile("lea 1f(%%rip), %0\nmov %0, %1\nxor %%edx, %%edx\nmov $1, %%eax\nidivl %%edx\n1:"
                         : "=&r"(dummy), "=m"(fault_.resume)
                         :
                         : "rax", "rdx", "memory");
        break;
    case SIGILL:
        __asm__ volatile("lea 1f(%%rip), %0\nmov %0, %1\nud2\n1:"
                         : "=&r"(dummy), "=m"(fault_.resume)
                         :
                         : "memory");
        break;
    case SIGTRAP:
        __asm__ volatile("lea 1f(%%rip), %0\nmov %0, %1\nint3\n1:"
                         : "=&r"(dummy), "=m"(fault_.resume)
                         :
                         : "memory");
        break;
    default:
        __asm__ volatile("lea 1f(%%rip), %0\nmov %0, %1\naddl $1, (%2)\n1:"
                         : "=&r"(dummy), "=m"(fault_.resume)
                         : "r"(bad)
                         : "memory");
    }
}

/* hunt: leaf claims FAULTS not blocked */
static void faults(struct run *r, int sig /* SIGFPE SIGILL SIGTRAP SIGBUS SIGSEGV */, int rounds /* 3..30 */,
                   int leave /* 0..1 */, int flags /* 0 SA_ONSTACK SA_NODEFER SA_NODEFER|SA_ONSTACK */,
                   int auto_disarm /* 0..1 */)
{
    struct sigaction old;
    stack_t before;
    void *stack = altstack(&before, auto_disarm ? (int)SS_AUTODISARM : 0);
    int fd = memfd_create("hunt", MFD_CLOEXEC);
    CHECK(ftruncate(fd, PAGE) == 0);
    uint8_t *file = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *bad = sig == SIGBUS ? (void *)(file + PAGE + 8) : (void *)16;
    fault_.count = 0, fault_.leave = leave;
    handle(sig, on_fault, flags, MASK_NONE, &old);
    for (volatile int i = 0; i < rounds; i++) {
        work(r, 1);
        if (sigsetjmp(fault_.env, 1) == 0)
            make_fault(sig, bad);
        note(r, i == 0 ? "code %d\n" : "", fault_.code);
    }
    sigaction(sig, &old, NULL);
    munmap(file, 2 * PAGE);
    close(fd);
    altstack_back(stack, &before);
    note(r, "faults %d\n", fault_.count);
}

/* A repeated string instruction that faults on its way, and goes on after the handler. */
static uint8_t *rep_at_;
static volatile int rep_faults_;

static void rep_fault(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
    if (at - (uintptr_t)rep_at_ >= 16 * PAGE)
        _exit(78);
    rep_faults_++;
    mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE);
}

/* hunt: leaf claims FAULTS not blocked */
static void rep_barrier(struct run *r, int rounds /* 2..8 */, int size /* 1 2 4 8 */, int back /* 0..1 */)
{
    struct sigaction old;
    uint8_t *p = rep_at_ = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rep_faults_ = 0;
    handle(SIGSEGV, rep_fault, 0, MASK_NONE, &old);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 8 * PAGE; i++)
            p[i] = (uint8_t)(i * 7 + round);
        mprotect(p, 16 * PAGE, PROT_NONE);
        work(r, 2);
        size_t n = (size_t)(8 * PAGE / size);
        uint8_t *to = p + 8 * PAGE, *from = p;
        if (back)
            to += 8 * PAGE - size, from += 8 * PAGE - size;
        if (back)
            __asm__ volatile("std" ::: "cc");
        switch (size) {
        case 1:
            __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
            break;
        case 2:
            __asm__ volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(n)::"memory");
            break;
        case 4:
            __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(n)::"memory");
            break;
        default:
            __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n)::"memory");
        }
        __asm__ volatile("cld" ::: "cc");
        CHECK_STATE(n == 0);
        CHECK(memcmp(p, p + 8 * PAGE, 8 * PAGE) == 0);
    }
    sigaction(SIGSEGV, &old, NULL);
    munmap(p, 16 * PAGE);
    note(r, "rep faults %d\n", rep_faults_);
}

/* Signals that the program sends itself. */
static __thread volatile int sent_, sent_code_, sent_value_;
static __thread struct run *sent_run_;

static void on_sent(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    sent_++;
    sent_code_ = info->si_code;
    sent_value_ = info->si_value.sival_int;
    if (sent_run_ != NULL)
        work(sent_run_, 1);
}

/* Not by pthread_sigqueue: libc has a wrong thread id in children that were made without it. */
static int queue_to_self(int sig, int value)
{
    siginfo_t info = {.si_signo = sig, .si_code = SI_QUEUE, .si_value.sival_int = value};
    info.si_pid = getpid(), info.si_uid = getuid();
    return (int)syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), sig, &info);
}

static void send_one(int sig, int how, int value)
{
    switch (how) {
    case 0:
        raise(sig);
        break;
    case 1:
        syscall(SYS_tgkill, getpid(), gettid(), sig);
        break;
    case 2:
        queue_to_self(sig, value);
        break;
    default:
        pthread_kill(pthread_self(), sig);
    }
}

/* hunt: leaf not blocked */
static void send_self(struct run *r, int sig /* anysignal */, int how /* 0..3 */, int rounds /* 5..60 */,
                      int flags /* 0 SA_ONSTACK SA_NODEFER SA_RESTART */, int mask /* 0..1 */,
                      int inside /* 0..1 */)
{
    struct sigaction old;
    stack_t before;
    void *stack = altstack(&before, 0);
    sent_ = 0, sent_run_ = inside ? r : NULL;
    handle(sig, on_sent, flags, mask, &old);
    for (int i = 0; i < rounds; i++) {
        int count = sent_;
        work(r, 1);
        send_one(sig, how, i);
        CHECK_STATE(sent_ == count + 1);
        CHECK_STATE(how != 2 || sent_value_ == i);
    }
    sigaction(sig, &old, NULL);
    altstack_back(stack, &before);
    note(r, "sent %d code %d\n", sent_, sent_code_);
}

/* hunt: leaf not vfork,noqueue */
static void pending(struct run *r, int sig /* signal */, int rounds /* 3..20 */, int take /* 0..7 */)
{
    struct sigaction old;
    sigset_t one, before, open, now;
    sent_ = 0, sent_run_ = NULL;
    handle(sig, on_sent, 0, MASK_NONE, &old);
    sigemptyset(&one), sigaddset(&one, sig);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    open = before;
    sigdelset(&open, sig);
    int fd = signalfd(-1, &one, SFD_CLOEXEC), got = 0, ep = epoll_create1(EPOLL_CLOEXEC);
    struct timespec second = {1, 0};
    for (int i = 0; i < rounds; i++) {
        send_one(sig, i % 4, i);
        sigpending(&now);
        CHECK(sigismember(&now, sig) == 1);
        work(r, 1);
        CHECK(sent_ == (take <= 3 ? i : 0));
        struct signalfd_siginfo info;
        struct epoll_event event;
        int which = 0;
        switch (take) {
        case 0:
            pthread_sigmask(SIG_SETMASK, &open, NULL);
            pthread_sigmask(SIG_BLOCK, &one, NULL);
            break;
        case 1:
            CHECK(sigsuspend(&open) == -1 && errno == EINTR);
            break;
        case 2:
            while (ppoll(NULL, 0, &second, &open) == 0 || sent_ == i)
                ;
            break;
        case 3:
            while (epoll_pwait(ep, &event, 1, 1000, &open) == 0 || sent_ == i)
                ;
            break;
        case 4:
            CHECK(sigwait(&one, &which) == 0);
            got += which == sig;
            break;
        case 5:
            got += AGAIN(sigtimedwait(&one, NULL, &second)) == sig;
            break;
        case 6:
            got += AGAIN(read(fd, &info, sizeof info)) == sizeof info && info.ssi_signo == (unsigned)sig;
            break;
        default:
            got += AGAIN(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 1000)) == 1;
            got += AGAIN(read(fd, &info, sizeof info)) == sizeof info;
        }
    }
    close(fd), close(ep);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(sig, &old, NULL);
    note(r, "pending %d %d\n", sent_, got);
}

/* hunt: leaf claims TIMERS not noise,blocked,vfork,threads,handler */
static void ticks(struct run *r, int which /* 0..2 */, int us /* 200..3000 */, int count /* 3..20 */,
                  int flags /* 0 SA_RESTART SA_ONSTACK SA_NODEFER */, int inside /* 0..1 */)
{
    static const int timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
    struct itimerval t = {{0, us}, {0, us}}, off = {0};
    struct sigaction old;
    stack_t before;
    void *stack = altstack(&before, 0);
    sent_ = 0, sent_run_ = NULL;
    handle(signals[which], on_sent, flags, inside, &old);
    setitimer(timers[which], &t, NULL);
    while (sent_ < count)
        spin();
    setitimer(timers[which], &off, NULL);
    sigaction(signals[which], &old, NULL);
    altstack_back(stack, &before);
    note(r, "ticked %d\n", sent_ >= count);
}

static __thread volatile int depth_, deepest_, nest_signals_[2];

static void on_nested(int sig, siginfo_t *info, void *uc)
{
    (void)info, (void)uc;
    if (++deepest_ < depth_)
        raise(sig == nest_signals_[0] ? nest_signals_[1] : nest_signals_[0]);
    if (sent_run_ != NULL)
        work(sent_run_, 1);
}

/* hunt: leaf not blocked,handler */
static void nested(struct run *r, int sig /* anysignal */, int other /* signal */, int depth /* 2..12 */,
                   int flags /* 0 SA_ONSTACK SA_NODEFER */)
{
    struct sigaction old[2];
    stack_t before;
    void *stack = altstack(&before, 0);
    deepest_ = 0, depth_ = depth, sent_run_ = r, nest_signals_[0] = sig, nest_signals_[1] = other;
    handle(sig, on_nested, flags, MASK_NONE, &old[0]);
    handle(other, on_nested, flags, MASK_NONE, &old[1]);
    work(r, 3);
    raise(sig);
    work(r, 3);
    sigaction(sig, &old[0], NULL);
    sigaction(other, &old[1], NULL);
    altstack_back(stack, &before);
    note(r, "deepest %d\n", deepest_);
}

static __thread sigjmp_buf out_;

static void on_out(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    work(sent_run_, 1);
    siglongjmp(out_, 1);
}

/* hunt: leaf not blocked */
static void jump_out(struct run *r, int sig /* anysignal */, int rounds /* 5..60 */,
                     int flags /* 0 SA_ONSTACK SA_NODEFER */, int auto_disarm /* 0..1 */, int save /* 0..1 */)
{
    struct sigaction old;
    stack_t before, now;
    sigset_t mask;
    void *stack = altstack(&before, auto_disarm ? (int)SS_AUTODISARM : 0);
    handle(sig, on_out, flags, MASK_ASYNC, &old);
    volatile int jumped = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (volatile int i = 0; i < rounds; i++) {
        if (sigsetjmp(out_, save) == 0) {
            sent_run_ = r;
            send_one(sig, i % 4, 0);
        } else
            jumped++;
        if (!save)
            pthread_sigmask(SIG_SETMASK, &mask, NULL);
        if (auto_disarm && flags == SA_ONSTACK) {
            sigaltstack(NULL, &now);
            note(r, i == 0 ? "after the jump: flags %x\n" : "", now.ss_flags);
            stack_t again = {.ss_sp = stack, .ss_size = STACK, .ss_flags = (int)SS_AUTODISARM};
            sigaltstack(&again, NULL);
        }
        work(r, 1);
    }
    sigaction(sig, &old, NULL);
    altstack_back(stack, &before);
    note(r, "jumped %d\n", jumped);
}

/* Coroutines; every other one is left from inside a signal's handler, and gone on with there. */
static __thread ucontext_t main_, parts_[6];
static __thread int turns_, co_sig_;
static __thread struct run *co_run_;

static void on_switch(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    int me = turns_;
    swapcontext(&parts_[me % 6], &main_);
}

static void coroutine(int me)
{
    for (;;) {
        volatile uint8_t deep[4 * PAGE];
        for (unsigned i = 0; i < sizeof deep; i += 256)
            deep[i] = (uint8_t)i;
        work(co_run_, 1);
        if (me % 2 && co_sig_)
            raise(co_sig_);
        else
            swapcontext(&parts_[me], &main_);
    }
}

/* hunt: leaf not blocked,noqueue */
static void coroutines(struct run *r, int sig /* signal */, int rounds /* 3..30 */,
                       int from_handlers /* 0..1 */)
{
    struct sigaction old;
    void *stacks[6];
    sigset_t mask, before;
    stack_t now;
    /* A handler waits on the alternate stack. To the kernel that stack is free while a coroutine runs, so
     * that another signal's frame would overwrite the handler's. */
    fill_mask(&mask, MASK_ASYNC), sigdelset(&mask, sig);
    sigaltstack(NULL, &now);
    pthread_sigmask(SIG_BLOCK, now.ss_flags & SS_ONSTACK ? &mask : NULL, &before);
    co_run_ = r, co_sig_ = from_handlers ? sig : 0;
    handle(sig, on_switch, SA_NODEFER, MASK_NONE, &old);
    for (int i = 0; i < 6; i++) {
        getcontext(&parts_[i]);
        stacks[i] = new_stack();
        parts_[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = STACK};
        makecontext(&parts_[i], (void (*)(void))coroutine, 1, i);
    }
    for (int i = 0; i < 6 * rounds; i++) {
        turns_ = i;
        swapcontext(&main_, &parts_[i % 6]);
    }
    for (int i = 0; i < 6; i++)
        munmap(stacks[i], STACK);
    sigaction(sig, &old, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    note(r, "turns %d\n", turns_);
}

static __thread volatile int queue_next_, queue_wrong_;

static void on_queued(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    queue_wrong_ += info->si_value.sival_int != queue_next_++;
}

/* hunt: leaf claims QUEUED not blocked,vfork,noqueue */
static void queued(struct run *r, int n /* 2..30 */, int work_between /* 0..1 */)
{
    int sig = SIGRTMAX - 1;
    struct sigaction old;
    sigset_t one, before;
    sigemptyset(&one), sigaddset(&one, sig);
    queue_next_ = queue_wrong_ = 0;
    handle(sig, on_queued, 0, MASK_NONE, &old);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    for (int i = 0; i < n; i++) {
        CHECK(queue_to_self(sig, i) == 0);
        if (work_between)
            work(r, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(r, 1);
    note(r, "queued %d wrong %d\n", queue_next_, queue_wrong_);
    /* A thread that shares the disposition may still need it: it stays. */
}

/* Registers and the place where execution goes on, changed in a handler. */
static void on_edit(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    ucontext_t *uc = context;
    uc->uc_mcontext.gregs[REG_R12] += 5;
    uc->uc_mcontext.gregs[REG_RBX] ^= 0xff;
    uc->uc_mcontext.gregs[REG_EFL] |= 1; /* carry */
}

/* hunt: leaf not blocked,noise */
static void edit_context(struct run *r, int sig /* anysignal */, int rounds /* 5..60 */)
{
    struct sigaction old;
    handle(sig, on_edit, 0, MASK_NONE, &old);
    /* Another signal that is pending then, a timer's or libc's for setresuid (33), has its handler first if
     * its number is lower: registers of that handler would be changed, natively too. */
    static const int lower[] = {SIGALRM, SIGVTALRM, SIGPROF, 33};
    uint64_t others = 0, before;
    for (unsigned i = 0; i < sizeof(lower) / sizeof(lower[0]); i++)
        others |= lower[i] < sig ? UINT64_C(1) << (lower[i] - 1) : 0;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &others, &before, 8) == 0);
    unsigned long total = 0;
    for (int i = 0; i < rounds; i++) {
        unsigned long a = (unsigned long)i, b = (unsigned long)i * 3, carry = 0;
        work(r, 1);
        __asm__ volatile(
            "mov %1, %%r12\nmov %2, %%rbx\nmov %3, %%rax\nmov %4, %%rdi\nmov %5, %%rsi\nmov %6, %%rdx\n"
            "syscall\nmov $0, %0\nadc $0, %0\nmov %%r12, %1\nmov %%rbx, %2\n"
            : "+&r"(carry), "+&r"(a), "+&r"(b)
            : "i"(SYS_tgkill), "m"((const long){getpid()}), "m"((const long){gettid()}),
              "m"((const long){sig})
            : "r12", "rbx", "rax", "rdi", "rsi", "rdx", "rcx", "r11", "memory", "cc");
        total = total * 7 + a * 31 + b * 3 + carry;
    }
    CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
    sigaction(sig, &old, NULL);
    note(r, "edited %lx\n", total);
}

/* hunt: leaf not blocked,vfork,noise */
static void masks(struct run *r, int sig /* signal */, int rounds /* 10..80 */, int raw /* 0..1 */)
{
    sigset_t before, now;
    uint64_t digest = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; i < rounds; i++) {
        static const int some[] = {SIGSEGV, SIGTRAP, SIGSYS, SIGUSR2, SIGFPE, SIGBUS, SIGILL, SIGTERM};
        sigset_t set;
        uint32_t dice = roll(&memories[r->id]);
        sigemptyset(&set);
        for (int k = 0; k < 8; k++)
            if (dice >> k & 1)
                sigaddset(&set, some[k]);
        sigaddset(&set, sig);
        int how = (int)(dice >> 10) % 3;
        if (raw)
            syscall(SYS_rt_sigprocmask, how, &set, &now, 8);
        else
            pthread_sigmask(how, &set, &now);
        if (i % 5 == 0)
            work(r, 1);
        for (int k = 0; k < 8; k++)
            digest = digest * 3 + (uint64_t)sigismember(&now, some[k]);
        pthread_sigmask(SIG_SETMASK, NULL, &now);
        for (int k = 0; k < 8; k++)
            digest = digest * 3 + (uint64_t)sigismember(&now, some[k]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    note(r, "masks %llx\n", (unsigned long long)digest);
}

/* hunt: leaf claims FAULTS,DISPOSITIONS not vfork */
static void dispositions(struct run *r, int sig /* signal */, int rounds /* 5..40 */)
{
    static const int faulty[] = {SIGSEGV, SIGTRAP, SIGSYS, SIGFPE, SIGBUS, SIGILL};
    struct sigaction old[7], now;
    uint64_t digest = 0;
    for (int i = 0; i < 7; i++)
        sigaction(i < 6 ? faulty[i] : sig, NULL, &old[i]);
    for (int i = 0; i < rounds; i++) {
        uint32_t dice = roll(&memories[r->id]);
        int s = dice % 7 < 6 ? faulty[dice % 7] : sig;
        struct sigaction a = {
            .sa_sigaction = on_sent,
            .sa_flags = (int)(dice >> 3 & 1) * SA_RESTART | (int)(dice >> 4 & 1) * SA_ONSTACK |
                        (int)(dice >> 5 & 1) * SA_NODEFER | (int)(dice >> 6 & 1) * (int)SA_RESETHAND |
                        (int)(dice >> 7 & 1) * SA_SIGINFO};
        if (dice >> 8 & 1)
            a.sa_handler = dice >> 9 & 1 ? SIG_IGN : SIG_DFL;
        fill_mask(&a.sa_mask, (int)(dice >> 10) % 3);
        if (dice >> 12 & 1)
            sigaction(s, &a, &now);
        else {
            sigaction(s, NULL, &now);
            signal(s, a.sa_handler);
        }
        digest = digest * 31 + (now.sa_handler == SIG_IGN) * 2u + (now.sa_handler == SIG_DFL) +
                 (unsigned)now.sa_flags + (unsigned)sigismember(&now.sa_mask, SIGTRAP) +
                 5u * (unsigned)sigismember(&now.sa_mask, SIGUSR1);
        if (i % 5 == 0)
            work(r, 1);
    }
    for (int i = 0; i < 7; i++)
        sigaction(i < 6 ? faulty[i] : sig, &old[i], NULL);
    note(r, "dispositions %llx\n", (unsigned long long)digest);
}

/* A stack that overflows, caught on another one. */
static sigjmp_buf overflow_;

static void on_overflow(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    siglongjmp(overflow_, 1);
}

static __attribute__((noinline)) int deeper(volatile int *p)
{
    volatile char room[512];
    room[0] = (char)*p;
    return deeper(p) + room[0];
}

static void *overflowing(void *arg)
{
    stack_t before;
    struct run *r = arg;
    void *stack = altstack(&before, 0);
    volatile int times = 0, zero = 0;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(overflow_, 1) == 0)
            deeper(&zero);
        times++;
        work(r, 2);
    }
    altstack_back(stack, &before);
    note(r, "overflows %d\n", times);
    return NULL;
}

/* hunt: leaf claims FAULTS not blocked,vfork */
static void overflow(struct run *r, int kilobytes /* 64 128 512 */)
{
    struct sigaction old;
    pthread_t t;
    pthread_attr_t attr;
    handle(SIGSEGV, on_overflow, SA_ONSTACK, MASK_NONE, &old);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)kilobytes * 1024);
    CHECK(pthread_create(&t, &attr, overflowing, r) == 0);
    pthread_join(t, NULL);
    sigaction(SIGSEGV, &old, NULL);
}

/* Wrappers: the body runs in such surroundings. */
static __thread struct {
    struct run *r;
    body *in;
    int done;
} inside_;

static void on_inside(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    struct run *r = inside_.r;
    body *in = inside_.in;
    inside_.done = 1;
    in(r);
}

/* hunt: wrapper not blocked adds handler */
static void in_handler(struct run *r, body *in, int sig /* anysignal */, int how /* 0..3 */,
                       int flags /* 0 SA_ONSTACK SA_NODEFER SA_ONSTACK|SA_NODEFER SA_RESTART */,
                       int mask /* 0 2 */, int stack_flags /* 0 (int)SS_AUTODISARM */)
{
    struct sigaction old;
    stack_t before;
    void *stack = altstack(&before, stack_flags);
    /* With no other signal blocked the agent cannot know when such a handler has ended (docs/agent-rules.md).
     */
    if (sig == SIGTRAP || sig == SIGSEGV || sig == SIGSYS)
        mask = MASK_ASYNC;
    handle(sig, on_inside, flags, mask, &old);
    inside_.r = r, inside_.in = in, inside_.done = 0;
    work(r, 1);
    send_one(sig, how, 0);
    work(r, 1);
    sigaction(sig, &old, NULL);
    altstack_back(stack, &before);
    note(r, "handled\n");
}

static void on_inside_jump(int sig, siginfo_t *info, void *uc)
{
    sigjmp_buf out; /* the body may jump, too */
    memcpy(&out, &out_, sizeof out);
    on_inside(sig, info, uc);
    siglongjmp(out, 1);
}

/* hunt: wrapper not blocked adds handler */
static void in_handler_jump(struct run *r, body *in, int sig /* signal */,
                            int flags /* 0 SA_ONSTACK SA_NODEFER */)
{
    struct sigaction old;
    stack_t before;
    sigjmp_buf saved;
    void *stack = altstack(&before, 0);
    memcpy(&saved, &out_, sizeof saved);
    handle(sig, on_inside_jump, flags, MASK_NONE, &old);
    if (sigsetjmp(out_, 1) == 0) {
        inside_.r = r, inside_.in = in;
        work(r, 1);
        raise(sig);
        note(r, "no jump\n");
    }
    memcpy(&out_, &saved, sizeof saved);
    work(r, 1);
    sigaction(sig, &old, NULL);
    altstack_back(stack, &before);
    note(r, "jumped\n");
}

/* hunt: wrapper not vfork adds blocked */
static void with_blocked(struct run *r, body *in, int raw /* 0..1 */)
{
    sigset_t all, before;
    sigfillset(&all);
    if (raw)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    else
        pthread_sigmask(SIG_SETMASK, &all, &before);
    work(r, 2);
    in(r);
    work(r, 2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static volatile int noise_;

static void on_noise(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    volatile uint8_t here[512];
    for (unsigned i = 0; i < sizeof here; i++)
        here[i] = (uint8_t)i;
    noise_ += here[200] == 200;
}

/* hunt: wrapper claims TIMERS not vfork adds noise */
static void with_ticks(struct run *r, body *in, int which /* 0..2 */, int us /* 150..5000 */,
                       int flags /* SA_RESTART SA_RESTART|SA_ONSTACK SA_RESTART|SA_NODEFER */,
                       int mask /* 0..2 */)
{
    static const int timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
    struct itimerval t = {{0, us}, {0, us}}, off = {0};
    struct sigaction old;
    handle(signals[which], on_noise, flags, mask, &old);
    setitimer(timers[which], &t, NULL);
    in(r);
    setitimer(timers[which], &off, NULL);
    signal(signals[which], SIG_IGN); /* one that is pending goes nowhere */
    sigaction(signals[which], &old, NULL);
}

struct co_inside {
    ucontext_t here, back;
    struct run *r;
    body *in;
};
static __thread struct co_inside *co_inside_;

static void co_body(void)
{
    struct co_inside *c = co_inside_;
    c->in(c->r);
    swapcontext(&c->here, &c->back);
}

/* hunt: wrapper not vfork */
static void in_coroutine(struct run *r, body *in)
{
    struct co_inside c = {.r = r, .in = in};
    stack_t now;
    sigaltstack(NULL, &now);
    if (now.ss_flags & SS_ONSTACK) { /* its handler would wait there, and be overwritten (see coroutines) */
        in(r);
        return;
    }
    void *stack = new_stack();
    getcontext(&c.here);
    c.here.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK};
    makecontext(&c.here, co_body, 0);
    co_inside_ = &c;
    swapcontext(&c.back, &c.here);
    munmap(stack, STACK);
}

/* No signal is queued any more: those below SIGRTMIN come without what they say, others not at all. */
/* The limit is of the whole process: other threads could queue meanwhile. */
/* hunt: wrapper claims SIGPENDING not vfork,threads adds noqueue */
static void without_queue(struct run *r, body *in)
{
    struct rlimit before, none;
    CHECK(getrlimit(RLIMIT_SIGPENDING, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
    in(r);
    CHECK(setrlimit(RLIMIT_SIGPENDING, &before) == 0);
}
