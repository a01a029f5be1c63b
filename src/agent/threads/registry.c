/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - followed threads by kernel id. Thread-local storage would be wrong in a vfork child, which
 * shares it.
 */
#include <string.h>
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"

#define TABLE (2u * MAX_THREADS)
#define GONE UINT32_MAX

/* TABLE entries, open addressing; NULL: not made yet. */
static struct entry {
    uint32_t tid; /* 0: never used; GONE: free again */
    struct thread *thread;
} * table;
/* Parts of the table that have ever had an entry. Iterations skip the others: a forked child would have to
 * copy their pages one by one. */
#define PART 256u
static uint8_t used[TABLE / PART];
static struct thread *free_threads;
static int lock;
static unsigned structures; /* made so far */

/* The next entry from i on that may be in use; TABLE: none. */
static uint32_t next_entry(uint32_t i)
{
    while (i < TABLE && !__atomic_load_n(&used[i / PART], __ATOMIC_ACQUIRE))
        i = (i / PART + 1) * PART;
    return i;
}

struct thread *thread_self(void)
{
    if (!table)
        return NULL;
    uint32_t tid = (uint32_t)sys0(SYS_gettid);
    for (uint32_t i = tid % TABLE, n = 0; n < TABLE; i = (i + 1) % TABLE, n++) {
        uint32_t at = __atomic_load_n(&table[i].tid, __ATOMIC_ACQUIRE);
        if (at == tid)
            return table[i].thread;
        if (at == 0)
            return NULL;
    }
    return NULL;
}

struct thread *thread_of_stack(const void *signal_stack)
{
    /* Includes threads that have ended: in a forked child, all but one have. */
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1)) {
        struct thread *t = table[i].thread;
        if (t && t->signal_stack == signal_stack)
            return t;
    }
    return NULL;
}

uint32_t threads_next(uint32_t at, struct thread **t)
{
    for (uint32_t i = next_entry(at); i < TABLE; i = next_entry(i + 1)) {
        uint32_t tid = __atomic_load_n(&table[i].tid, __ATOMIC_ACQUIRE);
        if (tid != 0 && tid != GONE) {
            *t = table[i].thread;
            return i + 1;
        }
    }
    return 0;
}

void threads_each(void (*visit)(struct thread *))
{
    struct thread *t;
    for (uint32_t at = threads_next(0, &t); at; at = threads_next(at, &t))
        visit(t);
}

void threads_forget_all(void)
{
    lock = 0;
    for (uint32_t i = next_entry(0); i < TABLE; i = next_entry(i + 1))
        table[i].tid = 0;
    free_threads = NULL;
}

uint32_t threads_made(void)
{
    return __atomic_load_n(&structures, __ATOMIC_RELAXED);
}

struct thread *thread_new(void)
{
    spin_lock(&lock);
    struct thread *t = free_threads;
    if (t)
        free_threads = t->next_free;
    spin_unlock(&lock);
    if (t)
        return t;
    /* One mapping, so one entry in the list of the agent's memory. */
    struct pieces {
        struct thread thread;
        uint8_t guard[WIRE_PAGE], signal_stack[SIGNAL_STACK_BYTES];
        uint8_t guard_above[WIRE_PAGE], dispatch_stack[DISPATCH_STACK_BYTES];
        uint64_t probe_buffer[PROBE_WORDS];
        uint8_t guard_after[WIRE_PAGE];
    } *memory = own_map(NULL, sizeof *memory, OWN_DATA);
    if (!memory)
        return NULL;
    t = &memory->thread;
    if (own_guard(memory->guard) || own_guard(memory->guard_above) || own_guard(memory->guard_after) ||
        arch_count_set_apart(t)) {
        own_unmap(memory, sizeof *memory);
        return NULL;
    }
    t->signal_stack = memory->signal_stack;
    t->probe_buffer = memory->probe_buffer;
    t->generated.self = t;
    t->index = __atomic_fetch_add(&structures, 1, __ATOMIC_RELAXED);
    t->generated.dispatch_stack = (uint64_t)(memory->dispatch_stack + DISPATCH_STACK_BYTES);
    arch_thread_init(t);
    return t;
}

int thread_register(struct thread *t)
{
    int done = 0;
    spin_lock(&lock);
    for (uint32_t i = t->tid % TABLE, n = 0; n < TABLE; i = (i + 1) % TABLE, n++)
        if (table[i].tid == 0 || table[i].tid == GONE || table[i].tid == t->tid) {
            table[i].thread = t;
            __atomic_store_n(&used[i / PART], 1, __ATOMIC_RELEASE);
            __atomic_store_n(&table[i].tid, t->tid, __ATOMIC_RELEASE);
            done = 1;
            break;
        }
    spin_unlock(&lock);
    return done ? 0 : -1;
}

void thread_free(struct thread *t)
{
    spin_lock(&lock);
    t->next_free = free_threads;
    free_threads = t;
    spin_unlock(&lock);
}

void thread_forget(struct thread *t)
{
    spin_lock(&lock);
    for (uint32_t i = t->tid % TABLE, n = 0; n < TABLE && table[i].tid; i = (i + 1) % TABLE, n++)
        if (table[i].tid == t->tid) {
            if (table[i].thread == t) /* else another thread has the id by now */
                __atomic_store_n(&table[i].tid, GONE, __ATOMIC_RELEASE);
            break;
        }
    spin_unlock(&lock);
    thread_free(t);
}

int threads_registry_init(void)
{
    table = own_map(NULL, TABLE * sizeof *table, OWN_DATA);
    return table ? 0 : -1;
}
