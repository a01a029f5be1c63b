/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count-context.c - the counter in a signal frame: it is put there when a thread enters counting code, and
 * removed when it leaves.
 */
#include <cpuid.h>
#include <string.h>
#include <sys/prctl.h>
#include "agent/sys/own.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/landings.h"
#include "agent/translator/x86_64/xsave.h"

/* Part of a register's bytes; they are in one component or in several. */
struct piece {
    unsigned component, offset, bytes; /* offset in the state; bytes 0: unused */
    unsigned area, area_bytes;         /* the whole component */
};
#define PIECES 3
static struct piece pieces[PIECES];

static struct piece piece_of(unsigned component, unsigned at, unsigned bytes)
{
    unsigned size = 0, offset = 0, c, d;
    if (component == 1)
        return (struct piece){component, XSAVE_XMM + at, bytes, XSAVE_XMM, 256};
    if (!__get_cpuid_count(0xd, component, &size, &offset, &c, &d))
        size = 0;
    return (struct piece){component, offset + at, size ? bytes : 0, offset, size};
}

int arch_count_init(void)
{
    int vector = count_init_vector();
    if (vector >= 16) {
        pieces[0] = piece_of(7, 64 * ((unsigned)vector - 16), 64);
    } else if (vector > 0) {
        pieces[0] = piece_of(1, 16 * (unsigned)vector, 16);
        pieces[1] = piece_of(2, 16 * (unsigned)vector, 16);
        pieces[2] = piece_of(6, 32 * (unsigned)vector, 32);
    }
    return pieces[0].bytes ? 0 : -1;
}

int arch_count_prepare(struct thread *t)
{
    if (!arch_has_ticks())
        return -1;
    arch_lock();
    int failed = landings_make();
    arch_unlock();
    if (failed || landings_map(t))
        return -1;
    if (t->generated.goal)
        return 0;
    t->generated.goal = COUNT_GOAL;
    t->generated.elements[1] = 1;
    for (unsigned i = 0; i < COUNT_STEPS; i++) {
        t->tables.steps[2 * i] = t->tables.steps[2 * (i + COUNT_STEPS)] = i;
        t->tables.steps[2 * i + 1] = 1;
        t->tables.steps[2 * (i + COUNT_STEPS) + 1] = COUNT_TURN + 1;
    }
    return 0;
}

int arch_has_ticks(void)
{
    int how = PR_TSC_ENABLE;
    return !sys_failed(sys2(SYS_prctl, PR_GET_TSC, &how)) && how == PR_TSC_ENABLE;
}

uint64_t arch_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

void arch_count_cancel_stop(struct thread *t)
{
    own_unguard(t->tables.stop);
}

int arch_count_set_apart(struct thread *t)
{
    return own_set_apart(t->tables.stop);
}

void arch_count_request_stop(struct thread *t)
{
    own_guard(t->tables.stop);
}

int arch_count_possible(const ucontext_t *uc)
{
    const uint8_t *state = xsave_state(uc);
    uint64_t has;
    if (!state)
        return 0;
    memcpy(&has, state + XSAVE_COMPONENTS, sizeof has);
    for (unsigned i = 0; i < PIECES; i++)
        if (pieces[i].bytes && !(has >> pieces[i].component & 1))
            return 0;
    return 1;
}

static void read_vector(const ucontext_t *uc, uint64_t value[8])
{
    const uint8_t *state = xsave_state(uc);
    uint8_t *to = (uint8_t *)value;
    memset(to, 0, 64);
    for (unsigned i = 0; i < PIECES; to += pieces[i++].bytes)
        if (state && xsave_in_use(state, pieces[i].component))
            memcpy(to, state + pieces[i].offset, pieces[i].bytes);
}

static void write_vector(ucontext_t *uc, const uint64_t value[8])
{
    uint8_t *state = xsave_state(uc);
    const uint8_t *from = (const uint8_t *)value;
    if (!state)
        return;
    for (unsigned i = 0; i < PIECES; from += pieces[i++].bytes) {
        const struct piece *p = &pieces[i];
        if (!p->bytes)
            continue;
        if (!xsave_in_use(state, p->component)) {
            uint64_t bits;
            memset(state + p->area, 0, p->area_bytes);
            memcpy(&bits, state + XSAVE_HEADER, sizeof bits);
            bits |= 1ull << p->component;
            memcpy(state + XSAVE_HEADER, &bits, sizeof bits);
        }
        memcpy(state + p->offset, from, p->bytes);
    }
}

void arch_count_insert(struct thread *t, ucontext_t *uc)
{
    read_vector(uc, t->generated.vector);
    arch_count_set_mark(t, uc, t->translation.counter_aim);
}

void arch_count_set_mark(struct thread *t, ucontext_t *uc, uint64_t references)
{
    const uint64_t value[8] = {COUNT_GOAL - references};
    t->translation.counter_aim = references;
    t->translation.counter_taken = value[0];
    if (uc)
        write_vector(uc, value);
    else
        t->generated.counter[0] = value[0];
}

uint64_t arch_count_value(const ucontext_t *uc)
{
    uint64_t value[8];
    read_vector(uc, value);
    return value[0];
}

uint64_t arch_count_blocks(const struct thread *t, const ucontext_t *uc)
{
    uint64_t value[8] = {0, t->generated.counter[1]};
    if (uc)
        read_vector(uc, value);
    return value[1];
}

uint64_t arch_count_remove(struct thread *t, ucontext_t *uc)
{
    uint64_t value[8];
    read_vector(uc, value);
    write_vector(uc, t->generated.vector);
    t->translation.counted_blocks = value[1];
    return value[0];
}
