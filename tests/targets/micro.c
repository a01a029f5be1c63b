/*
 * The micro programs of Eklov's thesis (figure 5): reads of a set of lines, at random or from end to end.
 *
 * usage: micro random|chained|sequential BYTES REFERENCES      REFERENCES 0: until it is killed
 *
 * `progress` counts the references. Chained reads are random ones that wait for each other, so that each
 * costs what its level costs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64
#define STEP 1024 /* references between two looks at the end */

volatile uint64_t progress;

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* STEP references each, from line `at` on; the next one's line. Kept apart, so that no address of the other
 * waits. */
static uint64_t sequential(const volatile char *set, uint64_t lines, uint64_t at, uint64_t *sum)
{
    for (int i = 0; i < STEP; i++) {
        *sum += (uint64_t)set[at * LINE];
        at = at + 1 < lines ? at + 1 : 0;
    }
    return at;
}

static uint64_t random_line(uint64_t lines, uint64_t more)
{
    return (uint64_t)((unsigned __int128)(next_random() + more) * lines >> 64);
}

static uint64_t at_random(const volatile char *set, uint64_t lines, uint64_t at, uint64_t *sum)
{
    for (int i = 0; i < STEP; i++) {
        *sum += (uint64_t)set[at * LINE];
        at = random_line(lines, 0);
    }
    return at;
}

/* The sum stays 0, but the CPU does not know. */
static uint64_t chained(const volatile char *set, uint64_t lines, uint64_t at, uint64_t *sum)
{
    for (int i = 0; i < STEP; i++) {
        *sum += (uint64_t)set[at * LINE];
        at = random_line(lines, *sum);
    }
    return at;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t (*step)(const volatile char *, uint64_t, uint64_t, uint64_t *) =
        strcmp(argv[1], "sequential") == 0 ? sequential
        : strcmp(argv[1], "random") == 0   ? at_random
                                           : chained;
    uint64_t lines = strtoull(argv[2], NULL, 10) / LINE, references = strtoull(argv[3], NULL, 10), sum = 0,
             at = 0;
    char *set =
        mmap(NULL, lines * LINE + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (set == MAP_FAILED || lines == 0)
        return 1;
    set = (char *)(((uintptr_t)set + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
    madvise(set, lines * LINE, MADV_HUGEPAGE);
    memset(set, 0, lines * LINE);
    for (uint64_t i = 0; i < lines; i++) /* else pages could be the one of zeros */
        set[i * LINE + 1] = 1;
    while (references == 0 || progress < references) {
        at = step(set, lines, at, &sum);
        progress += STEP;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
