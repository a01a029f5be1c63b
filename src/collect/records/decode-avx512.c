/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode-avx512.c - decodes records a group of references at a time. One permutation fetches the words of a
 * group; a block without straddling references has no branch except that for the next record. Blocks are
 * short (median: 2 references), so that a loop over the references of each would mispredict its end every
 * time.
 *
 * Compiled for any machine; decode_has_avx512 says whether decode_groups may be called.
 */
#include <errno.h>
#include <immintrin.h>
#include <stdlib.h>
#include "collect/records/decode-internal.h"

#define WINDOW 8u /* words in a vector */
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw")))
#define COLD __attribute__((noinline, cold))
#define AVX512_INLINE AVX512 static inline __attribute__((always_inline))

int decode_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

/* Adds p to g if it fits. Whether it did. */
static int add_to_group(struct group *g, const struct plain_ref *p, unsigned window, int load)
{
    int absolute = p->slot == 0 && !p->fs;
    if (g->n == 8 || (p->slot != 0 && p->slot - window >= WINDOW))
        return 0;
    if (absolute && g->with_base == 0)
        g->base = p->disp;
    int64_t disp = (int64_t)(p->disp - (absolute ? g->base : 0));
    if (disp != (int32_t)disp)
        return 0;
    g->disp[g->n] = (int32_t)disp;
    g->last[g->n] = (uint8_t)p->last;
    g->word[g->n] = (uint8_t)(p->slot != 0 ? p->slot - window : 0);
    g->with_word |= (uint8_t)((p->slot != 0) << g->n);
    g->with_base |= (uint8_t)(absolute << g->n);
    g->with_fs |= (uint8_t)(p->fs << g->n);
    g->loads = (uint8_t)(g->loads + load);
    g->n++;
    return 1;
}

int decode_make_groups(struct block *b, struct group *first)
{
    struct group group = {0}, *g = &group;
    unsigned window = 0, groups = 1;

    if (b->nwords > UINT8_MAX || b->ninsns > UINT8_MAX || 2 * b->nrefs >= 1u << DECODE_SITE_BITS)
        return 0;
    struct group *others = aligned_alloc(_Alignof(struct group), (2 * b->nrefs + 1) * sizeof(*others));
    if (others == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < 2 * b->nrefs; i++) {
        struct plain_ref p = b->plain[i / 2];
        int load = i % 2 == 0 && (p.twice || !p.store);
        if (i % 2 != 0 && !p.twice)
            continue;
        if (p.slot == 0)
            p.disp += b->header; /* plain_ref's displacement assumes that the header is added */
        if (p.last <= UINT8_MAX && add_to_group(g, &p, window, load))
            continue;
        g = &others[groups++ - 1];
        window = p.slot;
        *g = (struct group){.window = p.slot};
        if (p.last > UINT8_MAX || !add_to_group(g, &p, window, load) || groups > GROUP_TURNS) {
            free(others); /* too large, too far from its word, or too many: decoded one by one */
            return 0;
        }
    }
    if (groups > 1)
        b->groups = others;
    else
        free(others);
    group.more = (uint8_t)((groups - 1) | (b->turns ? GROUP_TURNS : 0));
    group.nwords = (uint8_t)b->nwords;
    group.ninsns = (uint8_t)b->ninsns;
    *first = group;
    return 0;
}

/* Output position, and what is needed to write there. */
struct target {
    uint64_t *lines;
    uint32_t *touches; /* NULL: sites are not counted */
    struct decode_sites *noted;
};

/* Writes a group one by one, since a reference in it straddles lines. */
static COLD struct target put_straddling(const struct group *g, const uint64_t *address, unsigned shift,
                                         uint32_t site, struct target out)
{
    for (unsigned i = 0; i < g->n; i++) {
        uint64_t first = address[i] >> shift, last = (address[i] + g->last[i]) >> shift;
        for (uint64_t line = first; line <= last; line++) {
            *out.lines++ = line;
            if (out.touches != NULL)
                *out.touches++ = (site + i) | (line == first ? part_bits(address[i], shift) : 0);
        }
        if (out.touches != NULL && last > first)
            out.noted->more(out.noted->ctx, site + i, last - first);
    }
    return out;
}

/* Writes the lines of a group. window: its words; site: of its first reference. Returns the end of the
 * output. */
AVX512_INLINE struct target put_group(const struct group *g, const uint64_t *window, __m512i fs,
                                      unsigned shift, uint32_t site, struct target out)
{
    const __m512i mask = _mm512_set1_epi64((long long)ADDRESS_MASK);
    __m512i index = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)g->word));
    __m512i address = _mm512_cvtepi32_epi64(_mm256_load_si256((const __m256i *)(const void *)g->disp));
    __m512i last = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)g->last));
    __m512i word = _mm512_maskz_permutexvar_epi64(g->with_word, index, _mm512_loadu_si512(window));

    address = _mm512_add_epi64(address, word);
    address = _mm512_mask_add_epi64(address, g->with_base, address, _mm512_set1_epi64((long long)g->base));
    address = _mm512_and_si512(_mm512_mask_add_epi64(address, g->with_fs, address, fs), mask);
    __m512i line = _mm512_srl_epi64(address, _mm_cvtsi32_si128((int)shift));
    last = _mm512_srl_epi64(_mm512_add_epi64(address, last), _mm_cvtsi32_si128((int)shift));
    /* Elements after the last reference are 0, which never straddles. */
    if (__builtin_expect(_mm512_cmpneq_epi64_mask(line, last) != 0, 0)) {
        uint64_t addresses[8];
        _mm512_storeu_si512(addresses, address);
        return put_straddling(g, addresses, shift, site, out);
    }
    _mm512_storeu_si512(out.lines, line);
    out.lines += g->n;
    if (out.touches != NULL) {
        const __m256i next = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        __m256i sites = _mm256_add_epi32(_mm256_set1_epi32((int)site), next);
        __m512i eighths = _mm512_srl_epi64(address, _mm_cvtsi32_si128((int)(shift - DECODE_PARTS_SHIFT)));
        __m256i parts = _mm256_slli_epi32(_mm512_cvtepi64_epi32(eighths), DECODE_PART_SHIFT);
        _mm256_storeu_si256((__m256i *)(void *)out.touches, _mm256_or_si256(sites, parts));
        out.touches += g->n;
    }
    return out;
}

/* The same for all groups except the first, which has n references. Separate, since the loop needs the
 * registers. */
static AVX512 COLD struct target put_others(const struct block *b, unsigned groups, unsigned n,
                                            const uint64_t *record, uint64_t fs_base, unsigned shift,
                                            struct decode_counts *counts, struct target out)
{
    uint32_t site = DECODE_SITE(b->header & WIRE_ID_MASK, n);
    for (const struct group *g = b->groups, *end = g + groups; g < end; g++) {
        out = put_group(g, record + g->window, _mm512_set1_epi64((long long)fs_base), shift, site, out);
        counts->loads += g->loads;
        counts->stores += (uint64_t)g->n - g->loads;
        site += g->n;
    }
    return out;
}

AVX512_INLINE uint64_t decode_all_groups(struct decoder *d, const uint64_t *words, uint64_t at, uint64_t n,
                                         uint64_t fs_base, int with_sites)
{
    const __m512i fs = _mm512_set1_epi64((long long)fs_base);
    const struct group *first = d->first;
    unsigned shift = d->line_shift;
    struct target out = {d->batch + d->used, with_sites ? d->batch_touches + d->used : NULL, d->noted};
    uint64_t *const full = d->batch + BATCH_LINES;
    uint64_t records = 0, instructions = 0, loads = 0, references = 0;

    /* A window must not extend beyond the buffer, and the last record may be incomplete. */
    while (at + UINT8_MAX + WINDOW < n && out.lines < full) {
        uint64_t header = words[at], id = header & WIRE_ID_MASK, nwords = header >> WIRE_ID_BITS;
        const struct group *g = &first[id];
        if (id >= WIRE_MAX_BLOCKS || g->nwords != nwords || nwords == 0)
            break;
        out = put_group(g, words + at, fs, shift, DECODE_SITE(id, 0), out);
        if (with_sites)
            note_execution(d->noted, id);
        records++;
        instructions += g->ninsns;
        loads += g->loads;
        references += g->n;
        if (__builtin_expect((g->more & ~GROUP_TURNS) != 0, 0))
            out = put_others(d->blocks[id], g->more & ~GROUP_TURNS, g->n, words + at, fs_base, shift,
                             d->counts, out);
        if (with_sites && (g->more & GROUP_TURNS) != 0)
            note_turn(d, d->blocks[id], words + at, fs_base, (size_t)(out.lines - d->batch));
        at += nwords;
    }
    d->used = (size_t)(out.lines - d->batch);
    d->counts->records += records;
    d->counts->instructions += instructions;
    d->counts->loads += loads;
    d->counts->stores += references - loads;
    return at;
}

AVX512 uint64_t decode_groups(struct decoder *d, const uint64_t *words, uint64_t at, uint64_t n,
                              uint64_t fs_base)
{
    return d->noted != NULL ? decode_all_groups(d, words, at, n, fs_base, 1)
                            : decode_all_groups(d, words, at, n, fs_base, 0);
}
