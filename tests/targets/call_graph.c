/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread -fno-optimize-sibling-calls */
/*
 * Functions that miss, and are reached by several paths: call_graph ROUNDS. Each touch_... is a copy of the
 * same loop; `paths` calls its own from two places, 3 times and once; `deep` from a recursive function;
 * `jump` after a longjmp out of deeper calls; `turns` by turns in a coroutine and outside; `sorts` in a
 * function that libc calls back; `touch_allocated` after it has allocated; `thread` in another thread, most
 * often. Stacks are those of -O2: no frame pointers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define BYTES (8u << 20)
#define APART 640u

static char *memory;
static size_t at;
static jmp_buf out;
static ucontext_t outside, inside;
static char own_stack[1 << 16];
static volatile long sink;

#define TOUCH(name)                                                   \
    static __attribute__((noipa)) long name(void)                     \
    {                                                                 \
        long sum = 0;                                                 \
        for (unsigned i = 0; i < 100; i++, at = (at + APART) % BYTES) \
            sum += memory[at];                                        \
        return sum + 1;                                               \
    }
TOUCH(touch_paths)
TOUCH(touch_deep)
TOUCH(touch_jump)
TOUCH(touch_turns)
TOUCH(touch_sorts)
TOUCH(touch_thread)

static __attribute__((noipa)) long often(void)
{
    return touch_paths() + touch_paths() + touch_paths() + 1;
}

static __attribute__((noipa)) long seldom(void)
{
    return touch_paths() + 2;
}

static __attribute__((noipa)) long deep(unsigned more)
{
    return more > 0 ? deep(more - 1) + 1 : touch_deep() + 2;
}

static __attribute__((noipa)) void leave(unsigned more)
{
    if (more > 0)
        leave(more - 1);
    else
        longjmp(out, 1);
    sink++;
}

static __attribute__((noipa)) long jump(void)
{
    if (setjmp(out) == 0)
        leave(5);
    return touch_jump() + 1;
}

static __attribute__((noipa)) void coroutine(void)
{
    for (;;) {
        sink += touch_turns();
        swapcontext(&inside, &outside);
    }
}

static __attribute__((noipa)) long turns(void)
{
    swapcontext(&outside, &inside);
    return touch_turns() + 1;
}

static __attribute__((noipa)) int compare(const void *a, const void *b)
{
    sink += touch_sorts();
    return *(const int *)a - *(const int *)b;
}

static __attribute__((noipa)) long sorts(void)
{
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof numbers[0], compare);
    return numbers[0];
}

/* The block is so large that cachegram notes each. */
static __attribute__((noipa)) long touch_allocated(void)
{
    long sum = 0;
    char *volatile block = malloc(BYTES);
    for (unsigned i = 0; i < 100; i++, at = (at + APART) % BYTES)
        sum += memory[at];
    free(block);
    return sum + (block != NULL);
}

static __attribute__((noipa)) void *thread(void *rounds)
{
    long sum = 0;
    for (long i = 0; i < 8 * *(long *)rounds; i++)
        sum += touch_thread();
    sink += sum;
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1, sum = 0;
    pthread_t other;
    if ((memory = calloc(1, BYTES)) == NULL || getcontext(&inside) != 0)
        return 1;
    for (size_t i = 0; i < BYTES; i += 64)
        memory[i] = 1;
    inside.uc_stack.ss_sp = own_stack;
    inside.uc_stack.ss_size = sizeof own_stack;
    makecontext(&inside, coroutine, 0);
    for (long i = 0; i < rounds; i++)
        sum += often() + seldom() + deep(3) + jump() + turns() + sorts() + touch_allocated();
    if (pthread_create(&other, NULL, thread, &rounds) != 0)
        return 1;
    pthread_join(other, NULL);
    printf("%ld\n", sum);
    return 0;
}
