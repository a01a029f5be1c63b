/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rivals.h - other measurements by a Pirate on this machine at the same time: each takes cache, and time on
 * the same cores, from the other. Both are told, through sockets without a file (unix(7), abstract), which
 * are gone with their process. Those in another network namespace are not seen.
 */
#ifndef CACHEGRAM_RIVALS_H
#define CACHEGRAM_RIVALS_H

#include <stddef.h>
#include <sys/types.h>

#define RIVALS 16u /* at once; more of them are not seen */

struct rivals {
    int fd;            /* -1: we cannot be found by others */
    pid_t pid[RIVALS]; /* of those seen so far; 0: of another container */
    size_t n;
};

/* From now on others find us. Those that are there already are seen. No failure: nobody is seen, then. */
void rivals_enter(struct rivals *r);
/* How many were seen since, till now. */
size_t rivals_seen(struct rivals *r);
void rivals_leave(struct rivals *r);

#endif
