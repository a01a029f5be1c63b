/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - isa_generate: writes a file of random sequences.
 *
 * A sequence is a list of pieces (pieces.h): mostly single instructions (instructions.c), and between them
 * short programs with branches, calls, loops, stack frames, string instructions. It ends with a jump through
 * ISA_EXIT.
 *
 * usage: isa_generate bytes|forms low|high SEED COUNT FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pieces.h"

static void sequence(struct generator *g, struct isa_sequence *s)
{
    g->holds[RSP] = HOLDS_POINTER;
    s->start = (uint32_t)g->at;
    s->image = pick(g, ISA_IMAGES);
    s->flags = 0x202 | (isa_random(&g->random) & (chance(g, 15) ? 0xcd5 : 0x8d5));
    g->indices = ISA_INDEX_REGISTERS;
    g->keep = 0;
    for (unsigned r = 0; r < 16; r++) {
        unsigned what = pick(g, 100);
        uint64_t any = isa_random(&g->random);
        if (r == RSP) {
            s->regs[r] = arena(g) + ISA_STACK + ISA_STACK_BYTES / 2 + pick(g, 32) * 8;
        } else if (what < 50) {
            g->holds[r] = HOLDS_POINTER;
            s->regs[r] = arena(g) + ISA_DATA + ISA_DATA_BYTES / 4 + pick(g, ISA_DATA_BYTES / 2) / 64 * 64 +
                         (chance(g, 15) ? pick(g, 64) : 0);
        } else if (what < 80) {
            g->holds[r] = HOLDS_SMALL;
            s->regs[r] = any % 32;
        } else {
            g->holds[r] = HOLDS_ANY;
            s->regs[r] = what < 90 ? any : any & 0xffffffff;
        }
    }
    unsigned n = chance(g, 95) ? 4 + pick(g, 21) : 40 + pick(g, 120);
    while (n--)
        piece(g);
    int64_t disp = (int64_t)(arena(g) + ISA_EXIT - here(g) - 6);
    byte(g, 0xff); /* jmp [rip + disp] */
    byte(g, 0x25);
    raw32(g, disp);
    for (unsigned junk = pick(g, 16); junk; junk--)
        byte(g, 0xcc);
    s->end = (uint32_t)g->at;
}

static int write_file(const char *path, struct isa_header *h, const struct isa_sequence *s,
                      const uint8_t *code)
{
    static const uint8_t zeros[4096];
    FILE *f = fopen(path, "wbe");
    if (!f)
        return -1;
    size_t used = sizeof *h + h->count * sizeof *s, gap = (4096 - used % 4096) % 4096;
    h->code_offset = used + gap;
    fwrite(h, sizeof *h, 1, f);
    fwrite(s, sizeof *s, h->count, f);
    fwrite(zeros, 1, gap, f);
    fwrite(code, 1, h->code_bytes, f);
    int failed = ferror(f);
    return fclose(f) || failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: isa_generate bytes|forms low|high SEED COUNT FILE\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[3], NULL, 0);
    unsigned count = (unsigned)strtoul(argv[4], NULL, 0);
    struct generator g = {.random = seed,
                          .base = strcmp(argv[2], "high") == 0 ? ISA_BASE_HIGH : ISA_BASE_LOW,
                          .code = calloc(1, ISA_CODE_MAX),
                          .bytes = strcmp(argv[1], "bytes") == 0};
    struct isa_sequence *s = calloc(count, sizeof *s);
    if (!g.code || !s)
        return 1;
    instructions_init(seed);
    for (unsigned i = 0; i < count; i++) {
        if (g.at + 8192 > ISA_CODE_MAX) {
            fprintf(stderr, "isa_generate: too many sequences for one file\n");
            return 1;
        }
        sequence(&g, &s[i]);
    }
    struct isa_header h = {.magic = ISA_MAGIC,
                           .count = count,
                           .seed = seed,
                           .base = g.base,
                           .code_bytes = (g.at + 4095) / 4096 * 4096};
    if (write_file(argv[5], &h, s, g.code)) {
        perror(argv[5]);
        return 1;
    }
    free(s);
    free(g.code);
    return 0;
}
