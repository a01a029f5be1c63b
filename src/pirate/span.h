/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - the part of a run that is measured: from when the program first comes to one place of its code
 * till it comes to another. The program runs freely in between, with no tracer.
 */
#ifndef CACHEGRAM_SPAN_H
#define CACHEGRAM_SPAN_H

#include "base/error.h"
#include "pirate/breakpoint.h"
#include "collect/launch/target.h"

struct span {
    const char *from, *to; /* code-place.h; NULL: its start, its end. Not owned */
    struct breakpoint begin, end;
    uint64_t traced_to; /* where breakpoints are forbidden: the first thread is traced till there; 0: not */
    int reached, begun, over; /* reached: the first place, be it too late to measure anything */
};

/* All of the run? Then the rest of this file does nothing. */
int span_is_all(const struct span *s);
/*
 * Before the command at path is started (NULL: it runs already). -EINVAL for a place that cannot be one,
 * -EPERM for a program with rights that it would lose if it were held; with a sentence.
 */
int span_check(const struct span *s, const char *path, struct error *err);
/*
 * Of a program that is held at its start, which it leaves, or of one that was attached to. Errors of
 * code_place_find and breakpoint_open, with a sentence; then a program that was held has not begun, and has
 * been killed.
 */
int span_arm(struct span *s, struct target *t, struct error *err);
/* 0: it is there; 1: it has ended without; -EINTR as target_wait; -EPERM with a sentence. */
int span_wait_begin(struct span *s, struct target *t, struct error *err);
/* Has it come to the end of the span? To be asked after target_wait_news. */
int span_is_over(struct span *s);
/* One sentence, for a run that has ended, if it did not come to where it should have; else "". */
void span_missed(const struct span *s, char *text, size_t size);
void span_clear(struct span *s);

#endif
