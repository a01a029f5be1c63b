/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - what the writing and the reading half of the profile share.
 */
#ifndef CACHEGRAM_PROFILE_INTERNAL_H
#define CACHEGRAM_PROFILE_INTERNAL_H

#include <sqlite3.h>
#include "base/moves.h"
#include "profile/profile.h"

/* "Cgrm", in the SQLite header at byte 68: file(1) and we distinguish a profile from other databases by it.
 */
#define PROFILE_APPLICATION_ID 0x4367726d

enum profile_stmt {
    STMT_SET,
    STMT_PROCESS,
    STMT_COUNTER,
    STMT_NATIVE,
    STMT_MODULE,
    STMT_BURST,
    STMT_WATCH,
    STMT_OUTCOME,
    STMT_PUT_HIST,
    STMT_WINDOW,
    STMT_SAMPLE,
    STMT_PIRATE,
    STMT_SITE_COUNTS,
    STMT_BLOCKS,
    STMT_IMAGE,
    STMT_FRAME,
    STMT_SITE,
    STMT_SITE_DISTANCE,
    STMT_GET,
    STMT_GET_HIST,
    STMT_COUNT
};

struct profile {
    sqlite3 *db;
    char *path; /* as the caller named it, for messages */
    int writing;
    char *journal;                  /* of a profile that was created */
    int made;                       /* its file is ours */
    struct moves moves;             /* that made way for it */
    sqlite3_stmt *stmt[STMT_COUNT]; /* prepared on first use */
};

/* Turn SQLite's last trouble with p into a sentence and a negative errno value. */
int profile_fail(const struct profile *p, struct error *err);
/* The statement, prepared, reset and unbound; NULL with err filled. */
sqlite3_stmt *profile_stmt(struct profile *p, enum profile_stmt which, struct error *err);
/*
 * Runs sql and hands each row to `take`, with a place of `size` bytes for it; *list is malloc'ed, *n its
 * length. 0 or a negative code.
 */
int profile_read_all(struct profile *p, const char *sql, size_t size,
                     void (*take)(sqlite3_stmt *s, void *element), void **list, size_t *n, struct error *err);
/* Close the database (an open transaction rolls back) and free p. NULL is allowed. */
void profile_free(struct profile *p);
/*
 * The name to give to SQLite: malloc'ed; "./" before a relative name, so that ":memory:", "file:..."
 * and the empty name are ordinary files. NULL when memory is short.
 */
char *profile_sqlite_name(const char *path);

#endif
