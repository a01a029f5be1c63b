/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - isa_record: runs a command in full mode and writes the references that its sequences made.
 *
 * Stands where the collector does: it makes the session, starts the command with the agent in it, and takes
 * buffers. What a record means is worked out here from wire.h alone, and the collector's decoder must name
 * the same lines in the same order.
 *
 * usage: isa_record [--lines] AGENT FILE REFS COMMAND...
 *
 * --lines: the agent filters lines (wire.h), and its filter lets all of them pass. Of each block, what is
 * written is the lines that it touched: one reference of one byte each, with the address of the block, and
 * the FS base as its mask.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "collect/records/decode.h"
#include "collect/launch/launch.h"
#include "collect/launch/session.h"
#include "isa.h"

#define MOST_REFS 65536 /* of one record */
#define MOST_LINES (2 * MOST_REFS)
#define LINE_SHIFT 6
#define ADDRESS_MASK ((1ull << 48) - 1)

static struct isa_header header;
static FILE *out;
static struct isa_ref refs[MOST_REFS];
static unsigned nrefs;
static uint64_t lines[MOST_LINES], decoded[MOST_LINES];
static size_t nlines, ndecoded;
static uint64_t fs_base, written;
static unsigned trouble; /* records that the collector's decoder reads in another way */

static void die(const char *what)
{
    fprintf(stderr, "isa_record: %s\n", what);
    exit(3);
}

/* Lines of [address, address + bytes), but those below `from`; returns the one after the last. */
static uint64_t add_lines(uint64_t address, unsigned bytes, uint64_t from)
{
    uint64_t line = address >> LINE_SHIFT, end = ((address + bytes - 1) >> LINE_SHIFT) + 1;
    for (line = line < from ? from : line; line < end; line++)
        if (nlines < MOST_LINES)
            lines[nlines++] = line;
    return end;
}

/* One reference, or two; mask: which elements are touched, all ones: all of it. */
static void add(const struct wire_ref *r, uint64_t address, unsigned size, uint64_t mask, uint32_t pc)
{
    int fs = (r->flags & WIRE_FS) != 0;
    uint64_t at = (address + (fs ? fs_base : 0)) & ADDRESS_MASK, from = 0;
    for (unsigned rw = WIRE_LOAD; rw <= WIRE_STORE; rw++) {
        if (!(r->rw & rw))
            continue;
        if (nrefs == MOST_REFS)
            die("too many references in a record");
        refs[nrefs++] = (struct isa_ref){.address = address,
                                         .mask = mask,
                                         .pc = pc,
                                         .size = (uint16_t)size,
                                         .rw = (uint8_t)rw,
                                         .fs = (uint8_t)fs};
        if (mask == ~0ull)
            add_lines(at, size, 0);
        else
            for (unsigned i = 0; i < size / r->elem_bytes; i++)
                if (mask >> i & 1)
                    from = add_lines(at + i * r->elem_bytes, r->elem_bytes, from);
        from = 0;
    }
}

static uint64_t all_of(unsigned n)
{
    return n >= 64 ? ~0ull : (1ull << n) - 1;
}

static void expand_rep(const struct wire_ref *r, const uint64_t *words, uint32_t pc)
{
    const uint64_t *w = words + r->slot;
    uint64_t moved = w[4] - (r->flags & WIRE_REP_DST ? w[2] : w[1]);
    uint64_t step = (int64_t)moved < 0 ? -(uint64_t)r->elem_bytes : r->elem_bytes;
    struct wire_ref source = *r, target = *r;
    source.rw = WIRE_LOAD;
    target.rw = r->flags & WIRE_REP_DST_RD ? WIRE_LOAD : WIRE_STORE;
    target.flags &= (uint8_t)~WIRE_FS; /* a prefix is for the source */
    for (uint64_t i = 0; i < w[0] - w[3]; i++) {
        if (r->flags & WIRE_REP_SRC)
            add(&source, w[1] + i * step, r->elem_bytes, ~0ull, pc);
        if (r->flags & WIRE_REP_DST)
            add(&target, w[2] + i * step, r->elem_bytes, ~0ull, pc);
    }
}

static void expand_gather(const struct wire_ref *r, const uint64_t *words, uint64_t base, uint32_t pc)
{
    for (unsigned i = 0; i < r->size / r->elem_bytes; i++) {
        if (!(words[r->slot2] >> i & 1))
            continue;
        int64_t index = 0;
        int32_t narrow;
        const uint8_t *at = (const uint8_t *)(words + r->slot3) + i * r->index_bytes;
        if (r->index_bytes == 4) {
            memcpy(&narrow, at, 4);
            index = narrow;
        } else {
            memcpy(&index, at, 8);
        }
        add(r, base + (uint64_t)index * r->scale, r->elem_bytes, ~0ull, pc);
    }
}

/* All references of instructions below `insns` of one record. */
static void expand(const struct wire_block *b, const uint64_t *words, uint32_t insns)
{
    nrefs = 0;
    nlines = 0;
    for (unsigned i = 0; i < b->nrefs; i++) {
        const struct wire_ref *r = &b->refs[i];
        uint64_t address = (uint64_t)r->disp + (r->slot ? words[r->slot] : 0);
        uint32_t pc = (uint32_t)(b->pc + r->pc_offset - header.base);
        uint64_t mask = r->kind == WIRE_REF_MASKED || r->kind == WIRE_REF_PACKED ? words[r->slot2] : 0;
        unsigned n = r->elem_bytes ? r->size / r->elem_bytes : 0;
        if (r->insn >= insns)
            continue;
        switch (r->kind) {
        case WIRE_REF_PLAIN:
            add(r, address, r->size, ~0ull, pc);
            break;
        case WIRE_REF_REP:
            expand_rep(r, words, pc);
            break;
        case WIRE_REF_GATHER:
            expand_gather(r, words, address, pc);
            break;
        case WIRE_REF_MASKED:
            mask &= all_of(n);
            if (mask)
                add(r, address, r->size, mask == all_of(n) ? ~0ull : mask, pc);
            break;
        case WIRE_REF_PACKED:
            mask &= all_of(n);
            if (mask)
                add(r, address, (unsigned)__builtin_popcountll(mask) * r->elem_bytes, ~0ull, pc);
            break;
        default:
            die("a reference of unknown kind");
        }
    }
}

/* --- the collector's decoder, on the same record --- */

static int sink(void *ctx, const uint64_t *from, size_t n)
{
    (void)ctx;
    if (ndecoded + n > MOST_LINES)
        return -ENOMEM;
    memcpy(decoded + ndecoded, from, n * sizeof *from);
    ndecoded += n;
    return 0;
}

/*
 * The record twice: the decoder treats a complete record and the last one of a buffer in different ways, and
 * must find the same lines in both. The last record of a burst may be incomplete; then it comes once.
 */
static void check_lines(struct decoder *decoder, const struct wire_desc *desc, const struct wire_block *b,
                        const uint64_t *record, uint64_t words, int incomplete)
{
    static uint64_t twice[2 * 4096];
    struct decode_counts counts = {0};
    struct wire_desc d = *desc;
    unsigned times = incomplete ? 1 : 2;
    if (words > 4096)
        die("a record is too long");
    for (unsigned i = 0; i < times; i++)
        memcpy(twice + i * words, record, words * sizeof *record);
    if (!incomplete)
        d.last_insns = UINT32_MAX;
    ndecoded = 0;
    int status = decode_buffer(decoder, &d, twice, times * words, sink, NULL, &counts);
    int same = ndecoded == times * nlines;
    for (unsigned i = 0; i < times && same; i++)
        same = memcmp(lines, decoded + i * nlines, nlines * sizeof *lines) == 0;
    if (!status && !counts.bad_records && same)
        return;
    fprintf(stderr,
            "isa_record: the block at %llx: the collector's decoder returns %d, %llu bad records, %zu lines "
            "in %u "
            "records where there are %zu in each\n",
            (unsigned long long)b->pc - header.base, status, (unsigned long long)counts.bad_records, ndecoded,
            times, nlines);
    trouble++;
}

/* --- buffers --- */

struct process {
    struct wire_proc *proc;
    const uint8_t *templates;
    struct decoder *decoder;
};

static void take(const struct process *p, const struct session *s, uint32_t i)
{
    const struct wire_desc *d = &p->proc->desc[i];
    const uint8_t *buffer = (const uint8_t *)p->proc + s->layout.buffer_offset + i * s->layout.buffer_stride;
    const uint64_t *words = (const uint64_t *)(const void *)buffer;
    fs_base = d->fs_base;
    for (uint64_t at = 0, next; at < d->words; at = next) {
        uint64_t id = words[at] & WIRE_ID_MASK;
        next = at + (words[at] >> WIRE_ID_BITS);
        if (id == 0 || id >= WIRE_MAX_BLOCKS || next == at || !p->proc->block_offset[id])
            die("a record without a block");
        const struct wire_block *b = (const void *)(p->templates + p->proc->block_offset[id]);
        if (b->nwords != next - at)
            die("a record of another length than its block's");
        int last = next >= d->words;
        if (b->pc < header.base || b->pc >= header.base + header.code_bytes)
            continue;
        expand(b, words + at, last ? d->last_insns : UINT32_MAX);
        check_lines(p->decoder, d, b, words + at, last ? d->words - at : next - at, last);
        if (fwrite(refs, sizeof *refs, nrefs, out) != nrefs)
            die("cannot write the references");
        written += nrefs;
    }
}

static void write_line(uint32_t pc, uint64_t line)
{
    struct isa_ref r = {.address = line << LINE_SHIFT, .mask = fs_base, .pc = pc, .size = 1, .rw = ISA_LOAD};
    if (fwrite(&r, sizeof r, 1, out) != 1)
        die("cannot write the lines");
    written++;
}

static void take_filtered(const struct process *p, const struct session *s, uint32_t i)
{
    static const struct wire_block *b; /* whose addresses come; it may have begun in the buffer before */
    const struct wire_desc *d = &p->proc->desc[i];
    const uint8_t *buffer = (const uint8_t *)p->proc + s->layout.buffer_offset + i * s->layout.buffer_stride;
    const uint64_t *words = (const uint64_t *)(const void *)buffer;
    fs_base = d->fs_base;
    for (uint64_t at = 0, next; at < d->words; at = next) {
        next = at + 1;
        if (words[at] >> 63) {
            uint64_t id = words[at] & WIRE_ID_MASK, nwords = WIRE_FILTERED_WORDS(words[at]);
            if (words[at] < WIRE_FILTERED || id == 0 || id >= WIRE_MAX_BLOCKS || !p->proc->block_offset[id])
                continue; /* an address that is none: the sequence faults */
            b = (const void *)(p->templates + p->proc->block_offset[id]);
            if (b->nwords != nwords)
                die("a record of another length than its block's");
            next = at + nwords;
        } else if (!b) {
            die("an address before any block");
        }
        uint32_t pc = (uint32_t)(b->pc - header.base);
        if (b->pc < header.base || b->pc >= header.base + header.code_bytes)
            continue;
        if (words[at] >> 63 && b->nwords > 1) {
            expand(b, words + at, next >= d->words ? d->last_insns : UINT32_MAX);
            for (size_t k = 0; k < nlines; k++)
                write_line(pc, lines[k]);
        } else if (!(words[at] >> 63)) {
            write_line(pc, (words[at] & ADDRESS_MASK) >> LINE_SHIFT);
        }
    }
}

/* Takes every buffer that is ready, in order; their number. */
static unsigned drain(const struct process *p, const struct session *s)
{
    static uint64_t expected = 1;
    unsigned taken = 0;
    for (uint32_t i = 0; i < s->layout.nbuffers; i++) {
        if (__atomic_load_n(&p->proc->buf_state[i], __ATOMIC_ACQUIRE) != WIRE_BUF_READY ||
            p->proc->desc[i].seq != expected)
            continue;
        if (s->map->filters)
            take_filtered(p, s, i);
        else
            take(p, s, i);
        expected++;
        taken++;
        __atomic_store_n(&p->proc->buf_state[i], WIRE_BUF_FREE, __ATOMIC_RELEASE);
        __atomic_fetch_add(&p->proc->buf_freed, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &p->proc->buf_freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        i = UINT32_MAX; /* from the start */
    }
    return taken;
}

static int collect(const struct session *s, pid_t pid)
{
    struct process p = {0};
    struct error err = {""};
    int status = 0, gone = 0;
    for (;;) {
        if (!p.proc && session_slot_state(s, 0) != WIRE_PROC_FREE) {
            p.proc = session_map_slot(s, 0);
            if (!p.proc)
                die("cannot map the process");
            p.templates = (const uint8_t *)p.proc + s->layout.template_offset;
            struct decode_source source = {p.templates, s->layout.template_bytes, p.proc->block_offset};
            p.decoder = decoder_new(1u << LINE_SHIFT, &source, &err);
            if (!p.decoder)
                die(err.text);
        }
        if (p.proc && drain(&p, s))
            continue;
        if (gone)
            break;
        if (waitpid(pid, &status, WNOHANG) == pid)
            gone = 1;
        else
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    if (!p.proc || p.proc->count.disabled)
        die("the agent did not work");
    decoder_free(p.decoder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void no_signals_to_restore(void)
{
}

int main(int argc, char **argv)
{
    struct session s;
    struct error err = {""};
    char name[64];
    pid_t pid;
    sigset_t mask;
    int filters = argc > 1 && strcmp(argv[1], "--lines") == 0;
    argc -= filters;
    argv += filters;
    if (argc < 5) {
        fprintf(stderr, "usage: isa_record [--lines] AGENT FILE REFS COMMAND...\n");
        return 2;
    }
    FILE *code = fopen(argv[2], "rbe");
    if (!code || fread(&header, sizeof header, 1, code) != 1 || header.magic != ISA_MAGIC)
        die("cannot read the sequences");
    fclose(code);
    out = fopen(argv[3], "wbe");
    const struct session_setting setting = {.mode = WIRE_MODE_FULL, .gap_us = 1000000, .seed = 1};
    if (!out || session_init(&s, &setting, &err) < 0)
        die(out ? err.text : argv[3]);
    s.map->line_bytes = 1u << LINE_SHIFT;
    s.map->filters = (uint32_t)filters;
    memset(s.map->filter, WIRE_FILTER_PASSES, sizeof s.map->filter);
    snprintf(name, sizeof name, "/proc/%d/fd/%d", getpid(), s.fd);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    if (launch(argv + 4, argv[1], name, &mask, no_signals_to_restore, &pid, &err) < 0)
        die(err.text);
    int status = collect(&s, pid);
    session_clear(&s);
    if (fclose(out) != 0)
        die("cannot write the references");
    printf("references %llu\n", (unsigned long long)written);
    return trouble ? 1 : status;
}
