/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct world world = {.xsave_bytes = 576};
uint8_t isa_clean[ISA_XSAVE_MAX] __attribute__((aligned(64)));
static _Thread_local uint8_t tls_bytes[ISA_TLS_BYTES] __attribute__((aligned(64)));

/* What a stretch of writable memory holds at the start of each sequence. */
struct stretch {
    uint64_t *now, *fresh;
    uint32_t offset, bytes;
};
static struct stretch stretches[3];
static uint64_t fresh[(ISA_DATA_BYTES + ISA_STACK_BYTES + ISA_TLS_BYTES) / 8];

void world_fail(const char *what)
{
    fprintf(stderr, "isa_run: %s: %s\n", what, strerror(errno));
    exit(3);
}

void world_map_code(const char *path, int in_memory)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &world.header, sizeof world.header) != sizeof world.header ||
        world.header.magic != ISA_MAGIC)
        world_fail(path);
    void *at = mmap(NULL, world.header.code_offset, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        world_fail(path);
    world.sequences = (const struct isa_sequence *)(const void *)((const uint8_t *)at + sizeof world.header);
    void *code = (void *)world.header.base;
    off_t offset = (off_t)world.header.code_offset;
    if (!in_memory) {
        if (mmap(code, world.header.code_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
                 offset) != code)
            world_fail("cannot map the code");
    } else if (mmap(code, world.header.code_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != code ||
               pread(fd, code, world.header.code_bytes, offset) != (ssize_t)world.header.code_bytes ||
               mprotect(code, world.header.code_bytes, PROT_READ | PROT_EXEC)) {
        world_fail("cannot copy the code");
    }
    close(fd);
}

static uint64_t random_word(uint64_t *random, uint64_t data)
{
    uint64_t r = isa_random(random);
    switch (r % 5) {
    case 0:
        return data + ISA_DATA_BYTES / 4 + (r >> 32) % (ISA_DATA_BYTES / 2) / 8 * 8;
    case 1:
        return (r >> 32) % 32;
    case 2:
        return 0;
    default:
        return isa_random(random);
    }
}

void world_make_memory(uint64_t exit_address)
{
    uint8_t *arena = (uint8_t *)(world.header.base + ISA_ARENA);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(arena, ISA_ARENA_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != arena)
        world_fail("cannot map the arena");
    uint64_t random = world.header.seed;
    for (size_t i = 0; i < sizeof fresh / 8; i++)
        fresh[i] = random_word(&random, (uint64_t)arena + ISA_DATA);
    uint64_t *constants = (uint64_t *)(void *)(arena + ISA_CONST);
    for (unsigned i = 0; i < ISA_CONST_BYTES / 8; i++)
        constants[i] = i < 64
                           ? (uint64_t)arena + ISA_DATA + ISA_DATA_BYTES / 4 + isa_random(&random) % 64 * 64
                           : random_word(&random, (uint64_t)arena + ISA_DATA);
    *(uint64_t *)(void *)(arena + ISA_EXIT) = exit_address;
    uint64_t *next = fresh;
    stretches[0] = (struct stretch){(void *)(arena + ISA_DATA), next, ISA_DATA, ISA_DATA_BYTES};
    next += ISA_DATA_BYTES / 8;
    stretches[1] = (struct stretch){(void *)(arena + ISA_STACK), next, ISA_STACK, ISA_STACK_BYTES};
    next += ISA_STACK_BYTES / 8;
    stretches[2] = (struct stretch){(void *)tls_bytes, next, ISA_ARENA_BYTES, ISA_TLS_BYTES};
    for (unsigned i = 0; i < 3; i++)
        memcpy(stretches[i].now, stretches[i].fresh, stretches[i].bytes);
    static const uint32_t closed[] = {0, ISA_CONST + ISA_CONST_BYTES, ISA_STACK + ISA_STACK_BYTES};
    for (unsigned i = 0; i < 3; i++)
        if (mprotect(arena + closed[i], 4096, PROT_NONE))
            world_fail("cannot close a page");
    if (mprotect(arena + ISA_CONST, ISA_CONST_BYTES, PROT_READ) ||
        mprotect(arena + ISA_EXIT, 4096, PROT_READ))
        world_fail("cannot protect a page");
    __asm__("mov %%fs:0, %0" : "=r"(world.fs_base));
    if ((uint64_t)tls_bytes + ISA_TLS_BYTES != world.fs_base)
        world_fail("the thread-local bytes do not lie right below the FS base");
}

/* One string instruction finds the next difference, so that this makes next to no records under the agent,
 * and a short burst reaches into the sequence itself. */
void world_list_changes(struct isa_result *r)
{
    for (unsigned i = 0; i < 3; i++) {
        const struct stretch *s = &stretches[i];
        uint64_t *a = s->now, *b = s->fresh;
        size_t left = s->bytes / 8;
        for (;;) {
            int equal;
            if (!left)
                break;
            __asm__ volatile("repe cmpsq" : "+S"(a), "+D"(b), "+c"(left), "=@ccz"(equal) : : "memory");
            if (equal)
                break;
            uint32_t offset = s->offset + (uint32_t)((uint8_t *)(a - 1) - (uint8_t *)s->now);
            if (r->nchanges < ISA_CHANGES)
                r->change[r->nchanges++] = (struct isa_change){.offset = offset, .value = a[-1]};
            else
                r->more_changes = (r->more_changes + a[-1] + offset) * 0x9e3779b97f4a7c15ull;
            a[-1] = b[-1];
        }
    }
}

/* --- vector state --- */

static void put_vector(uint8_t *x, unsigned n, const uint8_t v[64])
{
    if (n < 16) {
        memcpy(x + 160 + 16 * n, v, 16);
        if (world.layout.component[2])
            memcpy(x + world.layout.component[2] + 16 * n, v + 16, 16);
        if (world.layout.component[6])
            memcpy(x + world.layout.component[6] + 32 * n, v + 32, 32);
    } else if (world.layout.component[7]) {
        memcpy(x + world.layout.component[7] + 64 * (n - 16), v, 64);
    }
}

static void make_image(uint8_t *x, uint64_t *random, unsigned number)
{
    uint32_t mxcsr = 0x1f80u | (number & 3) << 13 | (number & 4 ? 0x8040u : 0);
    memcpy(x, isa_clean, sizeof isa_clean);
    memcpy(x + 512, &world.xsave_mask, 8);
    memcpy(x + 24, &mxcsr, 4);
    x[4] = number & 1 ? 0xff : 0; /* x87: all registers valid, or none */
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < 10; k++)
            x[32 + 16 * i + k] = (uint8_t)isa_random(random);
    for (unsigned n = 0; n < 32; n++) {
        uint8_t v[64];
        for (unsigned k = 0; k < 64; k += 4) {
            uint64_t r = isa_random(random);
            int32_t small = (int32_t)(r % 32) - 16, part = (int32_t)(r >> 16);
            if (ISA_INDEX_REGISTERS >> n & 1)
                part = !ISA_INDEX_WIDE(n) ? small : k % 8 ? -(v[k - 1] >> 7) : small;
            memcpy(v + k, &part, 4);
        }
        put_vector(x, n, v);
    }
    for (unsigned i = 0; i < 8 && world.layout.component[5]; i++) {
        uint64_t k = isa_random(random);
        memcpy(x + world.layout.component[5] + 8 * i, &k, 8);
    }
}

void world_make_images(void)
{
    unsigned a, b, c, d, low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    world.xsave_mask = ((uint64_t)high << 32 | low) & 0xe7;
    for (unsigned i = 2; i < 10; i++)
        if (world.xsave_mask >> i & 1 && __get_cpuid_count(0xd, i, &a, &b, &c, &d)) {
            world.layout.component[i] = b;
            if (a + b > world.xsave_bytes)
                world.xsave_bytes = a + b;
        }
    if (world.xsave_bytes > ISA_XSAVE_MAX)
        world_fail("the vector state is larger than expected");
    uint16_t fcw = 0x37f;
    uint32_t mxcsr = 0x1f80;
    memcpy(isa_clean, &fcw, 2);
    memcpy(isa_clean + 24, &mxcsr, 4);
    uint64_t random = world.header.seed ^ 0x5851f42d;
    for (unsigned i = 0; i < ISA_IMAGES; i++)
        make_image(world.images[i], &random, i);
}
