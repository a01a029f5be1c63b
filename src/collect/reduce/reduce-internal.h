/* SPDX-License-Identifier: Apache-2.0 */
/* reduce-internal.h - what the files of reduce.h share. */
#ifndef CACHEGRAM_REDUCE_INTERNAL_H
#define CACHEGRAM_REDUCE_INTERNAL_H

#include "collect/records/filter.h"
#include "collect/reduce/code-use.h"
#include "collect/reduce/reduce.h"

struct reducer {
    enum reduce_mode mode;
    int full_over; /* REDUCE_FULL_FIRST: bursts have begun */
    int finishing; /* nothing more will be stored */
    int news;      /* in `hist`, since it was stored */
    int distances;
    double lines_rate;  /* full mode: share of the lines whose distances are measured */
    uint64_t threshold; /* of the hash of lines that pass the filter, if there is one */
    int filters;
    struct filter filter;
    struct linesample *sample; /* NULL: all lines */
    unsigned line_bytes;
    uint64_t start_ns;
    uint64_t gap_ns, longest_gap_ns; /* 0: not known */
    struct burst *burst;             /* burst mode */
    struct sites *sites;             /* likewise */
    unsigned sites_every;            /* likewise: sites are counted in one of so many bursts */
    uint64_t sites_bytes;            /* stored so far */
    struct code *code;
    struct object_table *objects;
    struct call_tree *paths;              /* NULL: not known */
    struct sampled_table *causes;         /* of struct symbols_cause */
    struct code_use *use;                 /* of processes that have ended; NULL: not looked at */
    struct hist hist[PROFILE_HIST_KINDS]; /* full mode */
    struct hist buffer_stack;             /* full mode: stack distances of the buffer that is reduced */
    struct thread_buffer own;             /* likewise, in the thread's own stack */
    struct ahead *ahead;                  /* full mode: NULL until it is needed, or if it cannot be had */
    int in_turn;                          /* buffers are not decoded ahead */
    struct jit_watch jit;
    struct symbols_slice *slices;
    size_t nslices, slices_capacity;
    uint64_t slices_bytes;
    struct windows *windows; /* NULL: none */
    uint32_t *touched;       /* decoder_touches of a burst's touches */
    size_t ntouched, touched_capacity;
    struct shape_piece *shape_piece; /* work space; NULL: nothing is recorded that needs it */
    struct reduce_totals totals;
};

/* How the process' decoder treats string instructions, in full mode or in a burst. 0 or -ENOMEM. */
int reduce_set_strings(const struct reducer *r, struct reduce_process *process, int full);
/* What full mode needs. One stack per process, so that equal addresses of two processes are two lines. 0, or
 * -ENOMEM with err. */
int reduce_make_stack(const struct reducer *r, struct reduce_process *process, struct error *err);

/* Full mode, if code may change: after each buffer. 0 or -ENOMEM. */
int reduce_slices_buffer(struct reducer *r, struct reduce_process *process, const struct wire_desc *desc);
/* Of a process without more buffers: the counts of all slices, one after the other. *bytes stay valid until
 * reduce_slices_free. 0 or -ENOMEM. */
int reduce_slices_end(struct reducer *r, struct reduce_process *process, const uint8_t **bytes, size_t *size);
void reduce_slices_free(struct reduce_parts *parts);

#endif
