/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/watch/touched-words.h"

#include <errno.h>
#include <stdlib.h>
#include "collect/tunables.h"

struct touched_words {
    struct decoder *decoder; /* whose lines are words */
};

struct search {
    const uint64_t *line;
    uint64_t *mask;
    unsigned n, words; /* of a line */
    uint64_t room;     /* touches that are still looked at */
};

struct touched_words *touched_words_new(const struct decode_source *source, struct error *err)
{
    struct touched_words *t = calloc(1, sizeof *t);
    if (t == NULL || (t->decoder = decoder_new(TOUCHED_WORD_BYTES, source, err)) == NULL) {
        free(t);
        return NULL;
    }
    return t;
}

void touched_words_free(struct touched_words *t)
{
    if (t == NULL)
        return;
    decoder_free(t->decoder);
    free(t);
}

static int look(void *ctx, const uint64_t *touched, size_t n)
{
    struct search *s = ctx;
    for (unsigned k = 0; k < s->n; k++) {
        uint64_t first = s->line[k] / TOUCHED_WORD_BYTES;
        for (size_t i = 0; i < n; i++)
            if (touched[i] - first < s->words)
                s->mask[k] |= UINT64_C(1) << (touched[i] - first);
    }
    s->room -= n < s->room ? n : s->room;
    return s->room == 0 ? -ECANCELED : 0;
}

int touched_words_find(struct touched_words *t, const struct wire_desc *desc, const uint64_t *records,
                       uint64_t nrecords, unsigned line_bytes, const uint64_t *line, uint64_t *mask,
                       unsigned n)
{
    struct decode_counts counts = {0};
    struct search s = {.line = line,
                       .mask = mask,
                       .n = n,
                       .words = line_bytes / TOUCHED_WORD_BYTES,
                       .room = COLLECT_BURST_WORD_TOUCHES * nrecords + COLLECT_BURST_MORE_TOUCHES};
    for (unsigned i = 0; i < n; i++)
        mask[i] = 0;
    int status = decode_buffer(t->decoder, desc, records, nrecords, look, &s, &counts);
    return status == -ECANCELED ? 0 : status;
}
