/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "oracle.h"
#include "world.h"

#define FLAG_RESUME 0x10000ull
#define MOST_FOUND 4096
#define MOST_STEPS 20000 /* of a sequence: few have more than a hundred */

static int oracle_fd = -1;
static uint64_t end;
static struct isa_ref pending[ORACLE_MOST], found[MOST_FOUND];
static unsigned npending, nfound, steps;
static uint64_t pending_pc;

void steps_open(const char *path, uint64_t exit_address)
{
    oracle_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (oracle_fd < 0)
        world_fail(path);
    end = exit_address;
    oracle_init(&world.layout, world.header.base);
}

void steps_write(void)
{
    if (write(oracle_fd, found, nfound * sizeof *found) != (ssize_t)(nfound * sizeof *found))
        _exit(3);
    nfound = 0;
}

/* The references of a sequence follow one of no size; if another one follows, some are missing. */
void steps_begin(uint32_t start, int left_out)
{
    if (nfound == MOST_FOUND)
        steps_write();
    steps = 0;
    found[nfound++] = (struct isa_ref){.pc = start, .rw = left_out ? ISA_LOAD : 0};
}

/* No trap comes between a system call and the next instruction, so that it is made here. */
static void do_system_call(greg_t *g)
{
    g[REG_RAX] = syscall(g[REG_RAX], 0, 0, 0, 0, 0, 0);
    if (g[REG_RAX] == -1)
        g[REG_RAX] = -errno;
    g[REG_RIP] += 2;
    g[REG_RCX] = g[REG_RIP];
    g[REG_R11] = (g[REG_EFL] & ~(greg_t)(FLAG_TRAP | FLAG_RESUME));
}

static const uint8_t *without_prefixes(const uint8_t *code)
{
    while (*code == 0x66 || *code == 0x67 || (*code & 0xf0) == 0x40 || (*code & 0xfe) == 0xf2 ||
           (*code & 0xe7) == 0x26)
        code++;
    return code;
}

/* Keeps the first n of what the latest instruction was to do. */
static void keep_pending(unsigned n)
{
    if (nfound + n > MOST_FOUND)
        steps_write();
    memcpy(found + nfound, pending, n * sizeof *pending);
    nfound += n;
    npending = 0;
}

/* References that the latest instruction has made, if it stopped between two of them; else `otherwise`. */
static unsigned done_of_gather(const ucontext_t *uc, unsigned otherwise)
{
    struct isa_ref left[ORACLE_MOST];
    if ((uint64_t)uc->uc_mcontext.gregs[REG_RIP] != pending_pc || !oracle_is_gather(uc))
        return otherwise;
    return npending - oracle_references(uc, left);
}

void steps_fault(const ucontext_t *uc)
{
    keep_pending(npending ? done_of_gather(uc, 0) : 0);
}

int steps_step(ucontext_t *uc)
{
    static int pushed_flags;
    static uint8_t *popped_flags; /* where the trap flag was put for them, NULL: nowhere */
    greg_t *g = uc->uc_mcontext.gregs;
    uint64_t stack = world.header.base + ISA_ARENA + ISA_STACK;
    uint8_t *top = (uint8_t *)g[REG_RSP];
    int on_stack = (uint64_t)top >= stack && (uint64_t)top < stack + ISA_STACK_BYTES - 8;
    keep_pending(npending ? done_of_gather(uc, npending) : 0);
    /* The trap flag is the oracle's: what looks at the flags must not see it. */
    if (pushed_flags && on_stack)
        top[1] &= 0xfe;
    if (popped_flags) /* still there to be read, below the stack pointer */
        *popped_flags &= 0xfe;
    pushed_flags = 0;
    popped_flags = NULL;
    if (++steps > MOST_STEPS)
        return 1;
    uint64_t pc = (uint64_t)g[REG_RIP];
    while (pc >= world.header.base && pc < world.header.base + world.header.code_bytes &&
           memcmp((void *)pc, "\x0f\x05", 2) == 0) {
        do_system_call(g);
        pc = (uint64_t)g[REG_RIP];
    }
    if (pc == end)
        g[REG_EFL] &= ~(greg_t)FLAG_TRAP;
    if (pc < world.header.base || pc >= world.header.base + world.header.code_bytes)
        return 0;
    npending = oracle_references(uc, pending);
    pending_pc = pc;
    const uint8_t *code = without_prefixes((const uint8_t *)pc);
    pushed_flags = *code == 0x9c;
    if (*code == 0x9d && on_stack && !(top[1] & 1)) {
        popped_flags = top + 1;
        *popped_flags |= 1;
    }
    return 0;
}
