/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - the part of a run that is measured: from when the program first executes one place of its code
 * until it executes another. In between the program runs untraced.
 */
#ifndef CACHEGRAM_SPAN_H
#define CACHEGRAM_SPAN_H

#include "base/error.h"
#include "pirate/breakpoint.h"
#include "collect/launch/target.h"

struct span {
    const char *from, *to; /* code-place.h; NULL: its start, its end. Not owned */
    struct breakpoint begin, end;
    uint64_t traced_to; /* where breakpoints are forbidden: the first thread is traced up to this address; 0:
                           not */
    int reached, begun, over; /* reached: the first place was executed, even if too late for a measurement */
};

/* All of the run? Then nothing else in this file has an effect. */
int span_is_all(const struct span *s);
/*
 * Checks before the command at path is started (NULL: it runs already). -EINVAL for an invalid place, -EPERM
 * for a program with privileges that it would lose if it were held, -ENODEV where breakpoints never fire;
 * with err filled.
 */
int span_check(const struct span *s, const char *path, struct error *err);
/*
 * Sets breakpoints in a program that is held at its start, which it then leaves, or in one that was attached
 * to. Errors of code_place_find and breakpoint_open, with err filled; a held program has then not begun, and
 * has been killed.
 */
int span_arm(struct span *s, struct target *t, struct error *err);
/* Waits for the first place. 0: reached; 1: ended without reaching it; -EINTR as target_wait; -EPERM with err
 * filled. */
int span_wait_begin(struct span *s, struct target *t, struct error *err);
/* Has it reached the end of the span? To be called after target_wait_event. */
int span_is_over(struct span *s);
/* For a run that has ended: one sentence if it did not reach a place; otherwise "". */
void span_missed(const struct span *s, char *text, size_t size);
void span_clear(struct span *s);

#endif
