/* SPDX-License-Identifier: Apache-2.0 */
/* offers.h - what this machine and kernel offer a profiler, each found out by trying it. */
#ifndef CACHEGRAM_OFFERS_H
#define CACHEGRAM_OFFERS_H

#include <stddef.h>

enum offer_state { OFFER_NO, OFFER_YES, OFFER_UNKNOWN };

struct offer {
    const char *name;       /* "counters"; stable, for scripts */
    const char *what;       /* a few words for people */
    enum offer_state state; /* tried, not guessed */
    char found[160];        /* what was seen, such as the kernel's answer */
    const char *advice;     /* a sentence on how to get it, or get more of it; NULL if there is none */
};

/* Fills at most `room` offers; returns how many there are (OFFERS_MAX at most). Changes nothing that lasts;
 * takes some milliseconds. Processes it forks are gone when it returns. */
#define OFFERS_MAX 16u
size_t offers_find(struct offer *offers, size_t room);

/* What a program's file has of names: "debug information", "symbols", "neither"... */
struct program_names {
    int is_elf, has_symbols, has_debug; /* in the file itself */
    char separate[512];                 /* path of a separate file with debug information; "": none */
};
void program_names_find(const char *path, struct program_names *names);

#endif
