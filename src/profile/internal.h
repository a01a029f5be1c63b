/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by the writing and the reading half of the profile. */
#ifndef CACHEGRAM_PROFILE_INTERNAL_H
#define CACHEGRAM_PROFILE_INTERNAL_H

#include <sqlite3.h>
#include "base/moves.h"
#include "profile/profile.h"

/* "Cgrm", in the SQLite header at byte 68: distinguishes profiles from other databases, also for file(1). */
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
    STMT_WATCH_SITE,
    STMT_PUT_HIST,
    STMT_WINDOW,
    STMT_SAMPLE,
    STMT_PIRATE,
    STMT_TIME_WINDOW,
    STMT_GET_TIME_WINDOW,
    STMT_SITE_COUNTS,
    STMT_BLOCKS,
    STMT_IMAGE,
    STMT_FRAME,
    STMT_SITE,
    STMT_SITE_DISTANCE,
    STMT_OBJECT,
    STMT_SITE_OBJECT,
    STMT_OBJECT_FRAME,
    STMT_CAUSE,
    STMT_LINE_USE,
    STMT_STRIDE,
    STMT_FIELD,
    STMT_SITE_FIELD,
    STMT_SHARING,
    STMT_CONFLICT,
    STMT_PATH,
    STMT_SITE_PATH,
    STMT_GET,
    STMT_GET_HIST,
    STMT_COUNT
};

struct profile {
    sqlite3 *db;
    char *path; /* as the caller gave it, for messages */
    int writing;
    char *journal;                  /* of a created profile */
    int made;                       /* we created the file */
    struct moves moves;             /* existing files that were renamed */
    sqlite3_stmt *stmt[STMT_COUNT]; /* prepared on first use */
    void *kept;                     /* profile_set_kept */
    void (*release)(void *kept);
};

/* Converts SQLite's last error of p into a sentence and a negative errno value. */
int profile_fail(const struct profile *p, struct error *err);
/* The statement, prepared, reset and unbound; NULL with err filled. */
sqlite3_stmt *profile_stmt(struct profile *p, enum profile_stmt which, struct error *err);
/* 1 if the profile has that table: it may be missing (docs/format.md). 0, or a negative code. */
int profile_has_table(struct profile *p, const char *table, struct error *err);
/* How the rows of a query become elements of an array. */
struct profile_rows {
    const char *sql;
    const char *table; /* NULL, or a table that may be missing: then there are no rows */
    size_t size;       /* of an element */
    /* NULL: every column is an integer, and the element's members are these, of 64 bits each. */
    void (*take)(sqlite3_stmt *s, void *element);
    /* Offsets of the members that profile_column_text made; 0: no more. */
    size_t texts[2];
};
/* Reads all rows into a malloc'ed array: *list is a pointer to the first element, *n their number. 0, or a
 * negative code: then the array is empty, and *list NULL. */
int profile_read_rows(struct profile *p, const struct profile_rows *rows, void *list, size_t *n,
                      struct error *err);
/* Frees such an array and its texts. */
void profile_free_rows(const struct profile_rows *rows, void *list, size_t n);
/* Executes a prepared statement with these integers as its n parameters. 0 or a negative code. */
int profile_put_integers(struct profile *p, enum profile_stmt which, const uint64_t *values, int n,
                         struct error *err);
/* Binds text, or NULL for "". */
void profile_bind_text(sqlite3_stmt *s, int column, const char *text);
/* Binds an id, or NULL for 0. */
void profile_bind_id(sqlite3_stmt *s, int column, uint64_t id);
/* The column's number; NaN if it is NULL. */
double profile_column_number(sqlite3_stmt *s, int column);
/* Executes a statement without result rows, and resets it. 0 or a negative code. */
int profile_step(struct profile *p, sqlite3_stmt *s, struct error *err);
/* A malloc'ed copy of the column's text, "" if it is NULL. NULL when memory is short. */
char *profile_column_text(sqlite3_stmt *s, int column);
/* Closes the database (an open transaction is rolled back) and frees p. NULL is allowed. */
void profile_free(struct profile *p);
/*
 * The file name for SQLite, malloc'ed: with "./" before a relative name, so that ":memory:", "file:..." and
 * the empty name are ordinary files. NULL when memory is short.
 */
char *profile_sqlite_name(const char *path);

#endif
