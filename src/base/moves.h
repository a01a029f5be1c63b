/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - files that make way for new ones, and come back if these are not to be after all. */
#ifndef CACHEGRAM_MOVES_H
#define CACHEGRAM_MOVES_H

#define MOVES_MOST 6

/* All zero: nothing was moved. */
struct moves {
    int n;
    struct {
        char *from, *to;
        int spare; /* not to be visible at its new place: removed once all moves have succeeded */
    } move[MOVES_MOST];
};

/*
 * Renames `from` to `to`; what is there is kept until moves_keep, under a name of its own in the same folder.
 * to NULL: `from` itself is kept so. 0, also if there is no `from`; else a negative errno, and nothing was
 * done. A folder is not moved, nor replaced: -EISDIR.
 */
int moves_rename(struct moves *m, const char *from, const char *to);
/* Undoes all moves, as far as the system permits. */
void moves_undo(struct moves *m);
/* What was replaced is removed; the rest stays where it is now. */
void moves_keep(struct moves *m);

#endif
