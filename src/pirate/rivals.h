/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rivals.h - detects other Pirate measurements on this machine at the same time: they would take cache, and
 * time on the same cores, from each other. They find each other through sockets without a file (unix(7),
 * abstract), which vanish with their process. Those in another network namespace are not detected.
 */
#ifndef CACHEGRAM_RIVALS_H
#define CACHEGRAM_RIVALS_H

#include <stddef.h>
#include <sys/types.h>

#define RIVALS 16u /* most at the same time; further ones are not detected */

struct rivals {
    int fd;            /* -1: others cannot detect us */
    pid_t pid[RIVALS]; /* of those detected so far; 0: in another container */
    size_t n;
};

/* From now on others can detect us; detects those that exist already. On failure, none are detected. */
void rivals_enter(struct rivals *r);
/* Number of those detected until now. */
size_t rivals_count(struct rivals *r);
void rivals_leave(struct rivals *r);

#endif
