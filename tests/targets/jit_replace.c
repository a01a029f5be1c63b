/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JIT compiler that makes one function, runs it, and then makes another one at the same place, of the same
 * instructions: the first one walks through 2 MB, the second one through 8 KB again and again. Both do the
 * same number of steps. Arguments: rounds; "map" (/tmp/perf-PID.map), "dump" (jit-PID.dump, in the current
 * folder), "dump-header" (likewise, addresses of lines as V8 writes them) or "dump-no-times"; a source file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* int walk(const int *table, long lines) */
static const uint8_t walk[] = {
    0x31, 0xc0,             /* xor eax, eax */
    0x03, 0x07,             /* add eax, [rdi]: line 3 */
    0x48, 0x83, 0xc7, 0x40, /* add rdi, 64: line 4 */
    0x48, 0xff, 0xce,       /* dec rsi */
    0x75, 0xf5,             /* jnz: back to add eax */
    0xc3,
};
enum { SMALL = 128, LARGE = 32768 };

typedef int (*function)(const int *, long);

static const char *how = "map", *source = "";
static FILE *out;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return strcmp(how, "dump-no-times") == 0 ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put32(uint32_t value)
{
    fwrite(&value, sizeof value, 1, out);
}

static void put64(uint64_t value)
{
    fwrite(&value, sizeof value, 1, out);
}

static int begin(void)
{
    char path[64];
    if (strcmp(how, "map") == 0) {
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        return (out = fopen(path, "w")) != NULL;
    }
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    if ((out = fopen(path, "w+")) == NULL)
        return 0;
    const uint32_t header[] = {0x4a695444, 1, 40, 62, 0, (uint32_t)getpid()};
    fwrite(header, sizeof header, 1, out);
    put64(now());
    put64(0);
    fflush(out);
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(out), 0) != MAP_FAILED;
}

/* Lines of the function: of `add eax` and what follows. */
static void put_lines(uint64_t address)
{
    uint64_t shift = strcmp(how, "dump-header") == 0 ? 0x40 : 0;
    put32(2);
    put32((uint32_t)(32 + 3 * 16 + strlen(source) + 1 + 2 * 2));
    put64(now());
    put64(address);
    put64(3);
    for (uint32_t i = 0; i < 3; i++) {
        put64(address + shift + 2 * i);
        put32(2 + i);
        put32(0);
        if (i == 0)
            fwrite(source, strlen(source) + 1, 1, out);
        else
            fwrite("\xff", 2, 1, out);
    }
}

static void name(const void *code, const char *text)
{
    static uint64_t index;
    uint64_t address = (uintptr_t)code;
    if (strcmp(how, "map") == 0) {
        fprintf(out, "%lx %zx %s\n", (unsigned long)address, sizeof walk, text);
    } else {
        put_lines(address);
        put32(0);
        put32((uint32_t)(56 + strlen(text) + 1 + sizeof walk));
        put64(now());
        put32((uint32_t)getpid());
        put32((uint32_t)getpid());
        put64(address);
        put64(address);
        put64(sizeof walk);
        put64(index++);
        fwrite(text, strlen(text) + 1, 1, out);
        fwrite(walk, sizeof walk, 1, out);
    }
    fflush(out);
}

static function make(uint8_t *code, const char *text)
{
    if (mprotect(code, 65536, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    memcpy(code + 4096, walk, sizeof walk);
    if (mprotect(code, 65536, PROT_READ | PROT_EXEC) != 0)
        exit(1);
    name(code + 4096, text);
    return (function)(void *)(code + 4096);
}

int main(int argc, char **argv)
{
    int *table = calloc(LARGE, 64), sum = 0;
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    how = argc > 2 ? argv[2] : how;
    source = argc > 3 ? argv[3] : source;
    uint8_t *code = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == NULL || code == MAP_FAILED || !begin())
        return 1;
    function far = make(code, "walk_far");
    for (long round = 0; round < rounds; round++)
        sum += far(table, LARGE);
    function near = make(code, "walk_near");
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < LARGE / SMALL; i++)
            sum += near(table, SMALL);
    printf("%d\n", sum);
    return 0;
}
