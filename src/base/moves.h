/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - renames existing files to make way for new ones, and can undo this. */
#ifndef CACHEGRAM_MOVES_H
#define CACHEGRAM_MOVES_H

#define MOVES_MOST 6

/* All zero: nothing was moved. */
struct moves {
    int n;
    struct {
        char *from, *to;
        int spare; /* temporary: removed once all moves have succeeded */
    } move[MOVES_MOST];
};

/*
 * Renames `from` to `to`. A file that is at `to` is kept until moves_keep under another name in the same
 * folder. to NULL: `from` itself is kept in this way. 0, also if there is no `from`; otherwise a negative
 * errno, and nothing was changed. A folder is neither moved nor replaced: -EISDIR.
 */
int moves_rename(struct moves *m, const char *from, const char *to);
/* Undoes all moves, as far as the system permits. */
void moves_undo(struct moves *m);
/* Removes the replaced files; the others stay where they are. */
void moves_keep(struct moves *m);

#endif
