/* SPDX-License-Identifier: Apache-2.0 */
/* usf-samples.h - reads and writes the sparse samples of USF files (usf.c describes the format). */
#ifndef CACHEGRAM_TRACE_USF_SAMPLES_H
#define CACHEGRAM_TRACE_USF_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/error.h"

#define USF_DANGLING UINT64_MAX

struct usf_sample {
    size_t window; /* index */
    uint64_t begin,
        end; /* accesses since some moment; end: of the next access to the line, or USF_DANGLING */
    uint64_t address;
};

/* A window begins at `begin`, and lasts at least to its last sample. */
struct usf_window {
    uint64_t begin;
};

struct usf_samples {
    struct usf_sample *sample; /* in order of begin */
    size_t nsamples, samples_capacity;
    struct usf_window *window; /* in order; at least one if there are samples */
    size_t nwindows, windows_capacity;
    uint64_t left_out; /* samples of other line sizes */
};

/*
 * Reads the samples of lines of so many bytes from a file (- is standard input). 1: done; *damage says if the
 * file is damaged after them (its code is 0 if not). 0: not a USF file, or one that contains a trace.
 * Negative with err filled: cannot be read, memory is short, or damaged from the start.
 */
int usf_samples_read(const char *path, unsigned line_bytes, struct usf_samples *samples, struct error *damage,
                     struct error *err);
void usf_samples_clear(struct usf_samples *samples);
/* Writes them; the caller closes the file and checks it for errors. 0 or -EIO with err filled. */
int usf_samples_write(FILE *file, unsigned line_bytes, const struct usf_samples *samples, struct error *err);

#endif
