/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode-avx512.c - records decoded a group of references at a time: one permutation fetches their words,
 * and a block without straddling references has no branch but that for the next record. Blocks are
 * short (2 references, in the middle), and a loop over each would end wrongly guessed every time.
 *
 * Compiled for any machine; decode_has_avx512 says whether decode_groups may be called.
 */
#include <errno.h>
#include <immintrin.h>
#include <stdlib.h>
#include "collect/decode-internal.h"

#define WINDOW 8u /* words in a vector */

int decode_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

int decode_make_groups(struct block *b)
{
    struct group *groups = aligned_alloc(_Alignof(struct group), (2 * b->nrefs + 1) * sizeof(*groups));
    uint32_t low = 0, high = 0; /* words of the group in hand, 0: none so far */

    if (groups == NULL)
        return -ENOMEM;
    b->groups = groups;
    b->ngroups = 0;
    b->reach = b->nwords + 1; /* a record at the buffer's end may be incomplete */
    struct group *g = NULL;
    for (uint32_t i = 0; i < 2 * b->nrefs; i++) {
        const struct plain_ref *p = &b->plain[i / 2];
        if (i % 2 != 0 && !p->twice)
            continue;
        uint32_t new_low = p->slot != 0 && (low == 0 || p->slot < low) ? p->slot : low;
        uint32_t new_high = p->slot > high ? p->slot : high;
        if (g == NULL || g->n == 8 || new_high - new_low >= WINDOW) {
            g = &groups[b->ngroups++];
            *g = (struct group){0};
            new_low = new_high = p->slot;
        }
        low = new_low;
        high = new_high;
        g->disp[g->n] = p->disp + (p->slot == 0 ? (uint64_t)b->header : 0);
        g->last[g->n] = p->last;
        g->word[g->n] = p->slot; /* within the record, until the window is known */
        g->with_word |= (uint8_t)((p->slot != 0) << g->n);
        g->with_fs |= (uint8_t)(p->fs << g->n);
        g->n++;
        g->window = (uint16_t)low;
    }
    for (g = groups; g < groups + b->ngroups; g++) {
        for (unsigned i = 0; i < g->n; i++)
            g->word[i] = (uint8_t)(g->word[i] - (g->word[i] != 0 ? g->window : 0));
        if (b->reach < g->window + WINDOW)
            b->reach = g->window + WINDOW;
    }
    b->grouped = 1;
    return 0;
}

/* A group with a reference that straddles lines, one by one. */
static uint64_t *put_straddling(const struct group *g, const uint64_t *address, unsigned shift, uint64_t *out)
{
    for (unsigned i = 0; i < g->n; i++)
        for (uint64_t line = address[i] >> shift; line <= (address[i] + g->last[i]) >> shift; line++)
            *out++ = line;
    return out;
}

__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))) uint64_t
decode_groups(struct decoder *d, const uint64_t *words, uint64_t at, uint64_t n, uint64_t fs_base)
{
    const __m512i mask = _mm512_set1_epi64((long long)ADDRESS_MASK);
    const __m512i fs = _mm512_set1_epi64((long long)fs_base);
    const __m128i shift = _mm_cvtsi32_si128((int)d->line_shift);
    struct block *const *blocks = d->blocks;
    uint64_t *out = d->batch + d->used, *const full = d->batch + BATCH_LINES;
    uint64_t records = 0, instructions = 0, loads = 0, stores = 0;

    while (at < n && out < full) {
        uint64_t header = words[at], id = header & WIRE_ID_MASK, nwords = header >> WIRE_ID_BITS;
        const struct block *b = id < WIRE_MAX_BLOCKS ? blocks[id] : NULL;
        if (b == NULL || !b->grouped || b->nwords != nwords || b->reach > n - at)
            break;
        for (const struct group *g = b->groups, *end = g + b->ngroups; g < end; g++) {
            __m512i record = _mm512_loadu_si512(words + at + g->window);
            __m512i index = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)g->word));
            __m512i address = _mm512_maskz_permutexvar_epi64(g->with_word, index, record);
            address = _mm512_add_epi64(address, _mm512_load_si512(g->disp));
            address = _mm512_mask_add_epi64(address, g->with_fs, address, fs);
            address = _mm512_and_si512(address, mask);
            __m512i last = _mm512_cvtepu16_epi64(_mm_load_si128((const __m128i *)(const void *)g->last));
            __m512i line = _mm512_srl_epi64(address, shift);
            last = _mm512_srl_epi64(_mm512_add_epi64(address, last), shift);
            /* Behind the last reference all is 0, and never straddles. */
            if (__builtin_expect(_mm512_cmpneq_epi64_mask(line, last) != 0, 0)) {
                uint64_t addresses[8];
                _mm512_storeu_si512(addresses, address);
                out = put_straddling(g, addresses, d->line_shift, out);
                continue;
            }
            _mm512_storeu_si512(out, line);
            out += g->n;
        }
        records++;
        instructions += b->ninsns;
        loads += b->loads;
        stores += b->stores;
        at += nwords;
    }
    d->used = (size_t)(out - d->batch);
    d->counts->records += records;
    d->counts->instructions += instructions;
    d->counts->loads += loads;
    d->counts->stores += stores;
    return at;
}
