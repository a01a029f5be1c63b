/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupted contexts (agent/sys/context.h), with the processor's own signals. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The agent is no library that could be linked. */
#include "agent/sys/x86_64/context.c"

#define MOST 64

struct trap {
    siginfo_t info;
    ucontext_t context;
};

static struct trap traps[MOST];
static volatile int ntraps;

size_t safe_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

/* On some virtual machines icebp traps before it is executed, so that it does so again and again. */
static int is_before_icebp(const struct trap *t)
{
    return t->info.si_code == TRAP_BRKPT && *(uint8_t *)t->context.uc_mcontext.gregs[REG_RIP] == 0xf1;
}

static void note(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    if (ntraps == MOST)
        abort();
    ucontext_t *uc = context;
    traps[ntraps].info = *info;
    traps[ntraps++].context = *uc;
    if (is_before_icebp(&traps[ntraps - 1]))
        uc->uc_mcontext.gregs[REG_RIP]++;
}

static int setup(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    ntraps = 0;
    return sigaction(SIGTRAP, &action, NULL);
}

/* Five iterations of a string instruction, each of which ends in a trap. */
static void step_through(void)
{
    static char from[5], to[5];
    const char *source = from;
    char *end = to;
    uint64_t count = sizeof to;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n"
                     "pushfq\n"
                     "orq $0x100, (%%rsp)\n"
                     "popfq\n"
                     "rep movsb\n"
                     "pushfq\n"
                     "andq $~0x100, (%%rsp)\n"
                     "popfq\n"
                     "lea 128(%%rsp), %%rsp\n"
                     : "+D"(end), "+S"(source), "+c"(count)
                     :
                     : "memory", "cc");
}

static void steps(void **state)
{
    (void)state;
    step_through();
    assert_true(ntraps > 5);
    for (int i = 0; i < ntraps; i++)
        assert_true(arch_is_step(&traps[i].info, &traps[i].context));
}

/* What the kernel makes of a step if debug register 6 reads as zero. */
static void step_of_unknown_cause(void **state)
{
    (void)state;
    step_through();
    struct trap *t = &traps[2];
    t->info.si_code = TRAP_BRKPT;
    assert_true(arch_is_step(&t->info, &t->context));
    arch_set_step(&t->context, 0);
    assert_false(arch_is_step(&t->info, &t->context));
}

static void breakpoints_of_the_program(void **state)
{
    (void)state;
    __asm__ volatile("int3");
    __asm__ volatile(".byte 0xf1"); /* icebp */
    raise(SIGTRAP);
    assert_int_equal(ntraps, 3);
    assert_int_equal(traps[1].info.si_code, TRAP_BRKPT);
    for (int i = 0; i < ntraps; i++) {
        if (is_before_icebp(&traps[i])) {
            print_message("icebp does not end on this machine: not examined\n");
            continue;
        }
        assert_false(arch_is_step(&traps[i].info, &traps[i].context));
        arch_set_step(&traps[i].context, 1); /* the instruction was stepped */
        assert_false(arch_is_step(&traps[i].info, &traps[i].context));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(steps, setup),
        cmocka_unit_test_setup(step_of_unknown_cause, setup),
        cmocka_unit_test_setup(breakpoints_of_the_program, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
