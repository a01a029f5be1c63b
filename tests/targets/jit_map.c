/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two functions made at run time, at the same place in mappings of their own, and named in /tmp/perf-PID.map
 * as JIT compilers do it: one walks through 8 KB again and again, the other through 2 MB. Arguments: rounds,
 * "no-map".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* int walk(const int *table, long lines) */
static const uint8_t walk[] = {
    0x31, 0xc0,             /* xor eax, eax */
    0x03, 0x07,             /* add eax, [rdi] */
    0x48, 0x83, 0xc7, 0x40, /* add rdi, 64 */
    0x48, 0xff, 0xce,       /* dec rsi */
    0x75, 0xf5,             /* jnz: back to add eax */
    0xc3,
};

typedef int (*function)(const int *, long);

static function make(void)
{
    uint8_t *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        exit(1);
    memcpy(code + 4096, walk, sizeof walk);
    if (mprotect(code, 65536, PROT_READ | PROT_EXEC) != 0)
        exit(1);
    return (function)(void *)(code + 4096);
}

int main(int argc, char **argv)
{
    enum { SMALL = 128, LARGE = 32768 };
    function near = make(), far = make();
    int *table = calloc(LARGE, 64), sum = 0;
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    char path[64];
    if (table == NULL)
        return 1;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = argc > 2 && strcmp(argv[2], "no-map") == 0 ? NULL : fopen(path, "w");
    if (map != NULL) {
        fprintf(map, "%lx 2000 removed again\n", (unsigned long)(uintptr_t)near - 256);
        fprintf(map, "this is no entry\n");
        fprintf(map, "%lx %zx walk_near:<8 KB>\n", (unsigned long)(uintptr_t)near, sizeof walk);
        fprintf(map, "%lx %zx walk_far /src/app.js:12\n", (unsigned long)(uintptr_t)far, sizeof walk);
        fclose(map);
    }
    for (long round = 0; round < rounds; round++) {
        sum += far(table, LARGE);
        for (int i = 0; i < LARGE / SMALL; i++)
            sum += near(table, SMALL);
    }
    printf("%d\n", sum);
    return 0;
}
