/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - isa_run: runs sequences and writes what became of registers and memory.
 *
 * usage: isa_run [--trigger BURN | --oracle REFS] [--like RESULTS] [--code file|memory] FILE FIRST COUNT OUT
 *
 * --trigger BURN: asks the agent in this process to begin bursts; fails if there is none. BURN 0: wherever a
 * fault may have ended one. Else: before every sequence, and then touches memory up to BURN times, so that
 * the burst ends somewhere in the sequence.
 *
 * --like RESULTS: leaves out what was left out in that run. Without it, sequences are left out that set the
 * trap flag, use addresses where the agent may be, or run for more than a few milliseconds: a random store
 * may change a return address, and so lead to a popf, or into a loop that does not end.
 *
 * --code memory: puts the code into memory of its own, as programs do that make code; else it is mapped.
 *
 * --oracle REFS: steps through the sequences and writes their references (struct isa_ref) to REFS.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "isa.h"
#include "steps.h"
#include "wire/wire.h"
#include "world.h"

#define FLAG_ALIGNMENT 0x40000ull
#define HARMFUL_FLAGS (FLAG_TRAP | FLAG_ALIGNMENT | 0x400ull /* direction */)

/* Shared with the assembler below. */
uint64_t isa_in[17], isa_out[17], isa_own_rsp, isa_target, isa_xsave_low, isa_xsave_high;
uint8_t isa_image[ISA_XSAVE_MAX] __attribute__((aligned(64)));
uint8_t isa_after[ISA_XSAVE_MAX] __attribute__((aligned(64)));
void isa_enter(void);
extern const char isa_exit[], isa_resume[];

/* clang-format off */
__asm__(
    ".text\n.globl isa_enter, isa_exit, isa_resume\n"
    "isa_enter:\n"
    "    push %rbx\n    push %rbp\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, isa_own_rsp\n"
    "    mov isa_xsave_low, %rax\n    mov isa_xsave_high, %rdx\n    xrstor64 isa_image\n"
    "    pushq isa_in+128\n    popfq\n"
    "    mov isa_in, %rax\n    mov isa_in+8, %rcx\n    mov isa_in+16, %rdx\n    mov isa_in+24, %rbx\n"
    "    mov isa_in+40, %rbp\n    mov isa_in+48, %rsi\n    mov isa_in+56, %rdi\n    mov isa_in+64, %r8\n"
    "    mov isa_in+72, %r9\n    mov isa_in+80, %r10\n    mov isa_in+88, %r11\n    mov isa_in+96, %r12\n"
    "    mov isa_in+104, %r13\n    mov isa_in+112, %r14\n    mov isa_in+120, %r15\n    mov isa_in+32, %rsp\n"
    "    jmp *isa_target\n"
    "isa_exit:\n"
    "    mov %rax, isa_out\n    mov %rcx, isa_out+8\n    mov %rdx, isa_out+16\n    mov %rbx, isa_out+24\n"
    "    mov %rsp, isa_out+32\n    mov %rbp, isa_out+40\n    mov %rsi, isa_out+48\n    mov %rdi, isa_out+56\n"
    "    mov %r8, isa_out+64\n    mov %r9, isa_out+72\n    mov %r10, isa_out+80\n    mov %r11, isa_out+88\n"
    "    mov %r12, isa_out+96\n    mov %r13, isa_out+104\n    mov %r14, isa_out+112\n    mov %r15, isa_out+120\n"
    "    mov isa_own_rsp, %rsp\n"
    "    pushfq\n    popq isa_out+128\n    pushq $2\n    popfq\n"
    "    mov isa_xsave_low, %rax\n    mov isa_xsave_high, %rdx\n    xsave64 isa_after\n"
    "isa_resume:\n"
    "    mov isa_own_rsp, %rsp\n"
    "    mov isa_xsave_low, %rax\n    mov isa_xsave_high, %rdx\n    xrstor64 isa_clean\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbp\n    pop %rbx\n"
    "    ret\n");
/* clang-format on */

static struct isa_result *result;
static const struct isa_result *like;
static volatile int running, faulted, too_long;
static int stepping;

/* --- signals --- */

/* A handler starts with the alignment check that a sequence may have switched on. */
static void no_alignment_check(void)
{
    __asm__ volatile("sub $128, %%rsp\n pushfq\n andl %0, (%%rsp)\n popfq\n add $128, %%rsp"
                     :
                     : "i"((int)~FLAG_ALIGNMENT)
                     : "memory", "cc");
}

static const int greg_of[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void leave_sequence(greg_t *g)
{
    g[REG_RIP] = (greg_t)isa_resume;
    g[REG_EFL] &= ~(greg_t)HARMFUL_FLAGS;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    no_alignment_check();
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    if (stepping && sig == SIGTRAP && info->si_code == TRAP_TRACE) {
        if (steps_step(uc)) {
            too_long = 1;
            leave_sequence(g);
        }
        return;
    }
    if (!running) {
        dprintf(2, "isa_run: signal %d, code %d, address %p, pc %llx: outside of any sequence\n", sig,
                info->si_code, info->si_addr, (unsigned long long)g[REG_RIP]);
        _exit(4);
    }
    steps_fault(uc);
    for (unsigned i = 0; i < 16; i++)
        result->regs[i] = (uint64_t)g[greg_of[i]];
    result->flags = (uint64_t)g[REG_EFL];
    result->pc = (uint64_t)g[REG_RIP];
    result->signal = (uint64_t)sig;
    result->code = (uint64_t)(unsigned)info->si_code;
    result->address = (uint64_t)info->si_addr;
    result->error = (uint64_t)g[REG_ERR];
    result->trap = (uint64_t)g[REG_TRAPNO];
    memcpy(result->xsave, uc->uc_mcontext.fpregs, world.xsave_bytes);
    faulted = 1;
    leave_sequence(g);
}

/* Two ticks in one sequence are too many. */
static void on_tick(int sig, siginfo_t *info, void *context)
{
    no_alignment_check();
    static struct isa_result *before;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t pc = (uint64_t)g[REG_RIP];
    (void)sig;
    (void)info;
    if (running && before == result && pc >= world.header.base &&
        pc < world.header.base + world.header.code_bytes) {
        too_long = 1;
        leave_sequence(g);
    }
    before = running ? result : NULL;
}

static void break_off_the_endless(void)
{
    struct sigaction act = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    struct itimerval often = {{0, 8000}, {0, 8000}};
    if (sigaction(SIGVTALRM, &act, NULL) || setitimer(ITIMER_VIRTUAL, &often, NULL))
        world_fail("cannot set a timer");
}

static void catch_signals(void)
{
    static uint8_t stack[65536];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    sigfillset(&act.sa_mask);
    if (sigaltstack(&own, NULL))
        world_fail("sigaltstack");
    for (unsigned i = 0; i < 5; i++)
        if (sigaction(signals[i], &act, NULL))
            world_fail("sigaction");
}

/* --- the agent in this process --- */

static const struct wire_session *session;
static const struct wire_proc *agent;

static void find_session(void)
{
    char line[512];
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long start, end, offset;
        if (!strstr(line, "memfd:cachegram") ||
            sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) != 3)
            continue;
        if (offset == 0)
            session = (const void *)(uintptr_t)start;
        else if (!agent || (uintptr_t)agent > start)
            agent = (const void *)(uintptr_t)start; /* the slot's first mapping; its guard pages split it */
    }
    if (f)
        fclose(f);
    errno = 0;
    if (!session || !agent)
        world_fail("there is no agent in this process");
}

/* Without a free buffer no burst begins, and what follows would run natively. */
static void wait_for_buffers(void)
{
    for (unsigned tries = 0; tries < 20000; tries++) {
        unsigned free = 0;
        for (uint32_t i = 0; i < session->nbuffers; i++)
            free += __atomic_load_n(&agent->buf_state[i], __ATOMIC_ACQUIRE) == WIRE_BUF_FREE;
        if (free > 1)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

/* The signal by which the agent triggers a thread (src/agent/threads/trigger.c). Of one with a negative code
 * the kernel drops all else while the user's limit on pending signals is reached, perhaps by other processes.
 */
static void trigger(void)
{
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_USER, .si_errno = 1};
    info.si_value.sival_ptr = (void *)(uintptr_t)session;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP, &info);
}

/* --- running --- */

/* What would not be the same under the agent, for reasons of its own. */
static int cannot_be_compared(const struct isa_result *r)
{
    /* The trap flag is the agent's (docs/agent-rules.md). */
    if (r->flags & FLAG_TRAP || (r->signal == SIGTRAP && r->code == TRAP_TRACE))
        return 1;
    /* An address near the libraries: the agent's memory may be there, or a result. */
    return r->signal == SIGSEGV && r->address >= 0x7ff000000000 && r->address < 1ull << 47 &&
           r->address - world.header.base >= ISA_ARENA + ISA_ARENA_BYTES;
}

static void run_one(uint32_t i, int triggers, unsigned burn)
{
    const struct isa_sequence *s = &world.sequences[i];
    int left_out = like && like->signal == SIGVTALRM;
    if (stepping)
        steps_begin(s->start, left_out);
    if (left_out) {
        result->signal = SIGVTALRM;
        return;
    }
    static uint64_t random;
    static volatile uint64_t touched;
    memcpy(isa_in, s->regs, sizeof s->regs);
    isa_in[16] = s->flags | (stepping ? FLAG_TRAP : 0);
    isa_target = world.header.base + s->start;
    memcpy(isa_image, world.images[s->image], world.xsave_bytes);
    if (triggers && (burn || faulted || i % 64 == 0)) {
        wait_for_buffers();
        trigger();
        for (uint64_t n = burn ? isa_random(&random) % burn : 0; n; n--)
            touched++;
    }
    faulted = too_long = 0;
    running = 1;
    isa_enter();
    running = 0;
    if (!faulted && !too_long) {
        memcpy(result->regs, isa_out, sizeof result->regs);
        result->flags = isa_out[16];
        memcpy(result->xsave, isa_after, world.xsave_bytes);
    }
    world_list_changes(result);
    result->fs_base = world.fs_base;
    if (!like && !stepping && cannot_be_compared(result))
        too_long = 1;
    if (too_long) {
        if (stepping)
            steps_begin(s->start, 1);
        memset(result, 0, sizeof *result);
        result->signal = SIGVTALRM;
    }
}

static struct isa_result *make_results(const char *path, uint32_t first, uint32_t count)
{
    struct isa_results head = {
        .magic = ISA_MAGIC, .first = first, .count = count, .xsave_bytes = world.xsave_bytes};
    memcpy(head.component, world.layout.component, sizeof head.component);
    size_t bytes = sizeof head + count * sizeof(struct isa_result);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        world_fail(path);
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        world_fail(path);
    close(fd);
    memcpy(at, &head, sizeof head);
    return (struct isa_result *)(void *)(at + sizeof head);
}

static const struct isa_result *open_results(const char *path, uint32_t first, uint32_t count)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        world_fail(path);
    const struct isa_results *h = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (h == MAP_FAILED || h->magic != ISA_MAGIC || h->first != first || h->count != count)
        world_fail(path);
    return (const struct isa_result *)(const void *)(h + 1);
}

int main(int argc, char **argv)
{
    int triggers = 0, in_memory = 0;
    unsigned burn = 0;
    const char *like_path = NULL, *oracle_path = NULL;
    for (; argc > 5; argv += 2, argc -= 2) {
        if (strcmp(argv[1], "--trigger") == 0) {
            triggers = 1;
            burn = (unsigned)strtoul(argv[2], NULL, 0);
            find_session();
        } else if (strcmp(argv[1], "--oracle") == 0) {
            stepping = 1;
            oracle_path = argv[2];
        } else if (strcmp(argv[1], "--like") == 0) {
            like_path = argv[2];
        } else if (strcmp(argv[1], "--code") == 0) {
            in_memory = strcmp(argv[2], "memory") == 0;
        } else {
            break;
        }
    }
    if (argc != 5) {
        fprintf(stderr, "usage: isa_run [--trigger BURN | --oracle REFS] [--like RESULTS] [--code "
                        "file|memory] FILE FIRST COUNT OUT\n");
        return 2;
    }
    world_map_code(argv[1], in_memory);
    uint32_t first = (uint32_t)strtoul(argv[2], NULL, 0), count = (uint32_t)strtoul(argv[3], NULL, 0);
    if (first > world.header.count || count > world.header.count - first) {
        fprintf(stderr, "isa_run: %s has %u sequences\n", argv[1], world.header.count);
        return 2;
    }
    world_make_images();
    isa_xsave_low = world.xsave_mask;
    world_make_memory((uint64_t)isa_exit);
    if (stepping)
        steps_open(oracle_path, (uint64_t)isa_exit);
    struct isa_result *results = make_results(argv[4], first, count);
    catch_signals();
    if (like_path)
        like = open_results(like_path, first, count);
    else
        break_off_the_endless();
    for (uint32_t i = 0; i < count; i++) {
        result = &results[i];
        run_one(first + i, triggers, burn);
        like += like != NULL;
    }
    if (stepping)
        steps_write();
    return 0;
}
