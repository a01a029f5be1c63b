/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - isa_compare: tells where two runs, or two lists of references, differ.
 *
 * usage: isa_compare results FILE NATIVE OTHER    exit status 1 if they differ
 *        isa_compare refs FILE ORACLE RECORDED    likewise
 *        isa_compare list FILE NUMBER             disassembles a sequence
 *
 * The first few sequences that differ are shown with their instructions. The last line on the standard output
 * tells the figures, as words and numbers in pairs.
 */
#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "isa.h"

#define MOST_SHOWN 5
#define MOST_SKIPPED 100000 /* a sequence is given up after fewer instructions */

struct file {
    const uint8_t *at;
    size_t bytes;
};

static struct file code_file;
static const struct isa_header *header;
static const struct isa_sequence *sequences;
static ZydisDecoder decoder;
static ZydisFormatter formatter;

static struct file map(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        perror(path);
        exit(2);
    }
    struct file f = {.bytes = (size_t)st.st_size};
    void *at = f.bytes ? mmap(NULL, f.bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    close(fd);
    if (at == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    f.at = at;
    return f;
}

static int decode(uint32_t offset, ZydisDecodedInstruction *in, ZydisDecodedOperand *op)
{
    const uint8_t *bytes = code_file.at + header->code_offset + offset;
    size_t room = header->code_bytes - offset;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, room < 15 ? room : 15, in, op));
}

/* What lies between instructions (literals, bytes that are jumped over) is shown as if it were code. */
static void show(uint32_t number)
{
    const struct isa_sequence *s = &sequences[number];
    printf("sequence %u of seed %" PRIu64 " (image %u, flags %" PRIx64 "):\n", number, header->seed, s->image,
           s->flags);
    for (unsigned r = 0; r < 16; r++)
        printf("  %s=%" PRIx64 "%s", ZydisRegisterGetString(ZYDIS_REGISTER_RAX + (ZydisRegister)r),
               s->regs[r], r % 4 == 3 ? "\n" : "");
    for (uint32_t at = s->start; at < s->end;) {
        ZydisDecodedInstruction in;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        char text[256] = "?";
        unsigned length = 1;
        if (decode(at, &in, op)) {
            length = in.length;
            ZydisFormatterFormatInstruction(&formatter, &in, op, in.operand_count_visible, text, sizeof text,
                                            header->base + at, NULL);
        }
        printf("  %8x  ", at);
        for (unsigned i = 0; i < 15; i++)
            if (i < length)
                printf("%02x", code_file.at[header->code_offset + at + i]);
            else
                printf("  ");
        printf("  %s\n", text);
        at += length;
    }
}

/* --- results --- */

static unsigned differing;

static void differ(const char *what, unsigned which, uint64_t a, uint64_t b)
{
    if (differing <= MOST_SHOWN)
        printf("  %s %x: native %" PRIx64 ", other %" PRIx64 "\n", what, which, a, b);
}

/*
 * The parts of an xsave area that mean something: a component that is not in use counts as zeros (whether the
 * processor notices that it is not is up to it), and where the last x87 instruction was is left out.
 */
static void normalise(uint8_t *x, const struct isa_results *h)
{
    uint64_t used;
    memcpy(&used, x + 512, 8);
    memset(x + 6, 0, 2 + 16); /* opcode and the two addresses */
    memset(x + 416, 0, 576 - 416);
    if (!(used & 1)) {
        static const uint8_t initial[6] = {0x7f, 3};
        memcpy(x, initial, 6);
        memset(x + 32, 0, 128);
    }
    for (unsigned i = 0; i < 8; i++) /* beyond the 80 bits of a register */
        memset(x + 32 + 16 * i + 10, 0, 6);
    if (!(used & 2))
        memset(x + 160, 0, 256);
    memset(x + 28, 0, 4);
    static const uint32_t bytes[10] = {0, 0, 256, 0, 0, 64, 512, 1024, 0, 0};
    for (unsigned i = 2; i < 10; i++)
        if (h->component[i] && !(used >> i & 1))
            memset(x + h->component[i], 0, bytes[i]);
}

static void compare_result(const struct isa_results *h, uint32_t number, const struct isa_result *a,
                           const struct isa_result *b)
{
    static const char *const names[] = {"signal", "code",    "address", "error",
                                        "trap",   "FS base", "changes", "more"};
    struct isa_result x = *a, y = *b;
    if (x.address - x.fs_base == y.address - y.fs_base) /* where thread-local memory lies differs */
        y.address = x.address;
    y.fs_base = x.fs_base;
    if (x.signal == SIGSEGV && y.signal == SIGSEGV && x.address == x.pc && y.address == x.pc)
        y.code = x.code,
        y.error = x.error; /* a jump to where there is no code: what else is there may differ */
    normalise(x.xsave, h);
    normalise(y.xsave, h);
    if (memcmp(&x, &y, sizeof x) == 0)
        return;
    if (++differing <= MOST_SHOWN)
        show(number);
    for (unsigned r = 0; r < 16; r++)
        if (x.regs[r] != y.regs[r])
            differ(ZydisRegisterGetString(ZYDIS_REGISTER_RAX + (ZydisRegister)r), r, x.regs[r], y.regs[r]);
    if (x.flags != y.flags)
        differ("flags", 0, x.flags, y.flags);
    if (x.pc != y.pc)
        differ("pc", 0, x.pc, y.pc);
    for (unsigned i = 0; i < 8; i++)
        if ((&x.signal)[i] != (&y.signal)[i])
            differ(names[i], 0, (&x.signal)[i], (&y.signal)[i]);
    for (unsigned i = 0; i < ISA_CHANGES; i++)
        if (memcmp(&x.change[i], &y.change[i], sizeof x.change[i]) != 0)
            differ("memory at", x.change[i].offset, x.change[i].value, y.change[i].value);
    for (unsigned i = 0; i < h->xsave_bytes; i += 8)
        if (memcmp(x.xsave + i, y.xsave + i, 8) != 0) {
            uint64_t u, v;
            memcpy(&u, x.xsave + i, 8);
            memcpy(&v, y.xsave + i, 8);
            differ("vector state at", i, u, v);
        }
}

static int compare_results(const char *one, const char *other)
{
    struct file f = map(one), g = map(other);
    const struct isa_results *h = (const void *)f.at, *k = (const void *)g.at;
    if (f.bytes < sizeof *h || f.bytes != g.bytes || memcmp(h, k, sizeof *h) != 0 || h->magic != ISA_MAGIC ||
        f.bytes != sizeof *h + h->count * sizeof(struct isa_result)) {
        printf("not results of the same sequences\n");
        return 2;
    }
    const struct isa_result *a = (const void *)(h + 1), *b = (const void *)(k + 1);
    unsigned faults = 0, left_out = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        faults += a[i].signal != 0;
        left_out += a[i].signal == SIGVTALRM;
        compare_result(h, h->first + i, &a[i], &b[i]);
    }
    printf("sequences %u faults %u left_out %u differing %u\n", h->count, faults - left_out, left_out,
           differing);
    return differing != 0;
}

/* --- references --- */

/* Instructions whose references are known not to be recorded (docs/agent-rules.md): they are stepped over. */
static int is_stepped(uint32_t offset)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    if (!decode(offset, &in, op))
        return 1;
    if (in.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ ||
        (in.mnemonic == ZYDIS_MNEMONIC_ENTER && (op[1].imm.value.u & 31) != 0))
        return 1;
    for (unsigned i = 0; i < in.operand_count; i++)
        if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (op[i].mem.segment == ZYDIS_REGISTER_GS || op[i].mem.base == ZYDIS_REGISTER_EIP ||
             (in.address_width == 32 && in.meta.category == ZYDIS_CATEGORY_STRINGOP)))
            return 1;
    return 0;
}

static void print_ref(const char *whose, const struct isa_ref *r)
{
    printf("    %-9s %8x  %s %s%016" PRIx64 " %3u bytes", whose, r->pc, r->rw == ISA_LOAD ? "load " : "store",
           r->fs ? "fs:" : "", r->address, r->size);
    if (r->mask != ~0ull)
        printf(" mask %" PRIx64, r->mask);
    printf("\n");
}

struct refs {
    const struct isa_ref *at, *end;
};

static int in_sequence(const struct isa_ref *r, const struct isa_sequence *s)
{
    return r->pc >= s->start && r->pc < s->end;
}

/* What the oracle found of one sequence: it begins with a reference of no size. */
static struct refs expected_part(struct refs *from)
{
    struct refs r = {from->at + 1, from->at + 1};
    while (r.end < from->end && r.end->size != 0)
        r.end++;
    from->at = r.end;
    return r;
}

/* Whether sequence i, of which the oracle found `want`, left its own code or was too long for the oracle. */
static int went_astray(const struct refs *want, struct refs *expected, uint32_t i)
{
    int astray = want->at[-1].rw != 0;
    if (expected->at < expected->end && expected->at->pc == sequences[i].start) { /* the oracle gave up */
        expected->at++;
        astray = 1;
    }
    for (const struct isa_ref *r = want->at; r < want->end; r++)
        astray |= !in_sequence(r, &sequences[i]);
    return astray;
}

/* What was recorded of sequence i, whose references come in one piece. */
static struct refs recorded_part(struct refs *from, uint32_t i)
{
    struct refs r = {from->at, from->at};
    while (r.end < from->end && in_sequence(r.end, &sequences[i]))
        r.end++;
    from->at = r.end;
    return r;
}

/* Goes past what was recorded of a sequence that went astray, as far as the oracle could follow it. */
static void skip_strays(struct refs *from, const struct refs *want)
{
    for (const struct isa_ref *a = want->at; a < want->end; a++)
        if (from->at < from->end && memcmp(a, from->at, sizeof *a) == 0)
            from->at++;
        else if (!is_stepped(a->pc))
            break;
}

/*
 * A sequence before i went astray (a random store changed a return address) and may have recorded references
 * anywhere, in code of later sequences, too: on to the first one of sequence i, if there is one.
 */
static void skip_recorded(struct refs *from, uint32_t i)
{
    for (const struct isa_ref *r = from->at; r < from->end && r < from->at + MOST_SKIPPED; r++)
        if (in_sequence(r, &sequences[i])) {
            from->at = r;
            return;
        }
}

static int compare_refs(const char *one, const char *other)
{
    struct file f = map(one), g = map(other);
    struct refs expected = {(const void *)f.at, (const void *)(f.at + f.bytes)};
    struct refs recorded = {(const void *)g.at, (const void *)(g.at + g.bytes)};
    uint64_t same = 0, stepped = 0;
    unsigned astray = 0;
    uint32_t lost = 0; /* after the last that went astray */
    for (uint32_t i = 0; i < header->count; i++) {
        if (expected.at == expected.end || expected.at->size != 0 || expected.at->pc != sequences[i].start)
            break;
        struct refs want = expected_part(&expected);
        if (went_astray(&want, &expected, i)) {
            astray++;
            lost = i + 1;
            skip_strays(&recorded, &want);
            continue;
        }
        if (lost && i < lost + 100)
            skip_recorded(&recorded, i);
        struct refs have = recorded_part(&recorded, i);
        const struct isa_ref *a = want.at, *b = have.at;
        for (; a < want.end; a++) {
            if (b < have.end && memcmp(a, b, sizeof *a) == 0) {
                b++;
                same++;
            } else if (is_stepped(a->pc)) {
                stepped++;
            } else {
                break;
            }
        }
        if (a == want.end && b == have.end)
            continue;
        if (++differing > MOST_SHOWN)
            continue;
        show(i);
        printf("  after %td references that agree:\n", b - have.at);
        for (int n = 0; n < 4 && a + n < want.end; n++)
            print_ref("expected", a + n);
        for (int n = 0; n < 4 && b + n < have.end; n++)
            print_ref("recorded", b + n);
    }
    if (lost && lost + 100 > header->count)
        recorded.at = recorded.end;
    if (expected.at != expected.end || recorded.at != recorded.end) {
        printf("references of no sequence, or out of order: %td expected, %td recorded\n",
               expected.end - expected.at, recorded.end - recorded.at);
        differing++;
    }
    printf("sequences %u same %" PRIu64 " stepped %" PRIu64 " astray %u differing %u\n", header->count, same,
           stepped, astray, differing);
    return differing != 0;
}

/* --- lines --- */

#define LINE_SHIFT 6
#define PIECES 4 /* of what was recorded in a sequence's code, that are tried */

static int touches(const struct isa_ref *r, uint64_t fs_base, uint64_t line)
{
    uint64_t at = (r->address + (r->fs ? fs_base : 0)) & ((1ull << 48) - 1);
    return at >> LINE_SHIFT <= line && (at + r->size - 1) >> LINE_SHIFT >= line;
}

static int has_line(const struct refs *recorded, uint64_t line)
{
    for (const struct isa_ref *r = recorded->at; r < recorded->end; r++)
        if (r->address >> LINE_SHIFT == line)
            return 1;
    return 0;
}

/* On a stack that is not aligned to 8 bytes, lines may be missed (translator/x86_64/filter.c, STACK_UNIT). */
static int is_on_odd_stack(const struct isa_ref *r)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    if (r->address % 8 == 0 || !decode(r->pc, &in, op))
        return 0;
    for (unsigned i = 0; i < in.operand_count; i++)
        if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && op[i].mem.base == ZYDIS_REGISTER_RSP)
            return 1;
    return 0;
}

/* Whether each line of an ordinary reference was recorded. */
static int all_recorded(const struct refs *want, const struct refs *have, uint64_t fs_base, uint64_t *lines)
{
    for (const struct isa_ref *a = want->at; a < want->end; a++) {
        uint64_t at = (a->address + (a->fs ? fs_base : 0)) & ((1ull << 48) - 1);
        if (is_stepped(a->pc) || a->mask != ~0ull || is_on_odd_stack(a))
            continue;
        for (uint64_t line = at >> LINE_SHIFT; line <= (at + a->size - 1) >> LINE_SHIFT; line++, ++*lines)
            if (!has_line(have, line))
                return 0;
    }
    return 1;
}

/* Whether each recorded line is one of a reference. */
static int all_referenced(const struct refs *want, const struct refs *have, uint64_t fs_base)
{
    for (const struct isa_ref *b = have->at; b < have->end; b++) {
        const struct isa_ref *a = want->at;
        while (a < want->end && !touches(a, fs_base, b->address >> LINE_SHIFT))
            a++;
        if (a == want->end)
            return 0;
    }
    return 1;
}

/*
 * Of each sequence, lines that were recorded (isa_record --lines) against the oracle's references. A block
 * touches lines before its instructions are executed, so one that faults may have recorded more.
 */
static int compare_lines(const char *one, const char *other)
{
    struct file f = map(one), g = map(other);
    struct refs expected = {(const void *)f.at, (const void *)(f.at + f.bytes)};
    struct refs recorded = {(const void *)g.at, (const void *)(g.at + g.bytes)};
    uint64_t fs_base = recorded.at < recorded.end ? recorded.at->mask : 0, lines = 0;
    unsigned astray = 0, more = 0;
    uint32_t lost = 0; /* after the last that went astray */
    for (uint32_t i = 0; i < header->count; i++) {
        if (expected.at == expected.end || expected.at->size != 0 || expected.at->pc != sequences[i].start)
            break;
        struct refs want = expected_part(&expected);
        if (went_astray(&want, &expected, i)) {
            astray++;
            lost = i + 1;
            continue;
        }
        skip_recorded(&recorded, i);
        struct refs have = recorded_part(&recorded, i);
        int all = all_recorded(&want, &have, fs_base, &lines);
        /* What went astray may have come through the code of this one first. */
        struct refs later = recorded;
        for (int n = 0; n < PIECES && !all && lost && i < lost + 100; n++) {
            skip_recorded(&later, i);
            struct refs piece = recorded_part(&later, i);
            if ((all = all_recorded(&want, &piece, fs_base, &lines))) {
                have = piece;
                recorded = later;
            }
        }
        more += !all_referenced(&want, &have, fs_base);
        if (all)
            continue;
        if (++differing > MOST_SHOWN)
            continue;
        show(i);
        for (const struct isa_ref *r = want.at; r < want.end; r++)
            print_ref("expected", r);
        for (const struct isa_ref *r = have.at; r < have.end; r++)
            print_ref("recorded", r);
    }
    printf("sequences %u lines %" PRIu64 " more %u astray %u differing %u\n", header->count, lines, more,
           astray, differing);
    return differing != 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr,
                "usage: isa_compare results|refs|lines FILE ONE OTHER, or: isa_compare list FILE NUMBER\n");
        return 2;
    }
    code_file = map(argv[2]);
    header = (const void *)code_file.at;
    if (code_file.bytes < sizeof *header || header->magic != ISA_MAGIC) {
        fprintf(stderr, "isa_compare: %s is not a file of sequences\n", argv[2]);
        return 2;
    }
    sequences = (const void *)(header + 1);
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    if (argc == 5 && strcmp(argv[1], "results") == 0)
        return compare_results(argv[3], argv[4]);
    if (argc == 5 && strcmp(argv[1], "refs") == 0)
        return compare_refs(argv[3], argv[4]);
    if (argc == 5 && strcmp(argv[1], "lines") == 0)
        return compare_lines(argv[3], argv[4]);
    uint32_t number = (uint32_t)strtoul(argv[3], NULL, 0);
    if (argc != 4 || strcmp(argv[1], "list") != 0 || number >= header->count)
        return 2;
    show(number);
    return 0;
}
