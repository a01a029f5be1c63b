/* SPDX-License-Identifier: Apache-2.0 */
/* offers.h - features of this machine and kernel for a profiler, each determined by trying it. */
#ifndef CACHEGRAM_OFFERS_H
#define CACHEGRAM_OFFERS_H

#include <stddef.h>

enum offer_state { OFFER_NO, OFFER_YES, OFFER_UNKNOWN };

struct offer {
    const char *name;       /* "counters"; stable, for scripts */
    const char *what;       /* a short description for people */
    enum offer_state state; /* the result of trying it */
    char found[160];        /* details, such as the kernel's answer */
    const char *advice;     /* a sentence on how to enable or extend it; NULL: none */
};

/* Fills at most `room` offers; returns their number (OFFERS_MAX at most). Changes nothing permanently; takes
 * some milliseconds. Its child processes have ended when it returns. */
#define OFFERS_MAX 16u
size_t offers_find(struct offer *offers, size_t capacity);

/* Names in a program's file. */
struct program_names {
    int is_elf, has_symbols, has_debug; /* in the file itself */
    char separate[512];                 /* path of a separate file with debug information; "": none */
};
void program_names_find(const char *path, struct program_names *names);

#endif
