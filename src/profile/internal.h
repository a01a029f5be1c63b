/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - shared by the writing and the reading half of the profile. */
#ifndef CACHEGRAM_PROFILE_INTERNAL_H
#define CACHEGRAM_PROFILE_INTERNAL_H

#include <sqlite3.h>
#include "base/moves.h"
#include "profile/profile.h"

/* "Cgrm", in the SQLite header at byte 68: distinguishes profiles from other databases, also for file(1). */
#define PROFILE_APPLICATION_ID 0x4367726d

/* Different statements that a process executes while a profile is open: more than there are in src/profile.
 */
#define PROFILE_STATEMENTS 64

struct profile {
    sqlite3 *db;
    char *path; /* as the caller gave it, for messages */
    int writing;
    char *journal;      /* of a created profile */
    int made;           /* we created the file */
    struct moves moves; /* existing files that were renamed */
    struct {
        const char *sql;
        sqlite3_stmt *prepared;
    } statements[PROFILE_STATEMENTS]; /* prepared on first use; the first unused one has no sql */
    void *kept;                       /* profile_set_kept */
    void (*release)(void *kept);
    struct error damage; /* the first that was found; text "": none */
};

/* Converts SQLite's last error of p into a sentence and a negative errno value. */
int profile_fail(struct profile *p, struct error *err);
/* The statement, prepared, reset and unbound; NULL with err filled. It is kept by the address of `sql`, a
 * string literal. */
sqlite3_stmt *profile_stmt(struct profile *p, const char *sql, struct error *err);
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

/* A parameter of a statement. */
struct profile_value {
    enum { VALUE_END, VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB } type;
    union {
        uint64_t integer;
        double real;
        const void *bytes;
    };
    size_t size; /* of a blob */
};

static inline struct profile_value value_int(uint64_t integer)
{
    return (struct profile_value){.type = VALUE_INTEGER, .integer = integer};
}

/* NULL if present is 0. */
static inline struct profile_value value_int_if(int present, uint64_t integer)
{
    return (struct profile_value){.type = present ? VALUE_INTEGER : VALUE_NULL, .integer = integer};
}

/* NULL for 0. */
static inline struct profile_value value_id(uint64_t id)
{
    return value_int_if(id != 0, id);
}

/* NULL for NaN. */
static inline struct profile_value value_real(double real)
{
    return (struct profile_value){.type = VALUE_REAL, .real = real};
}

static inline struct profile_value value_text(const char *text)
{
    return (struct profile_value){.type = VALUE_TEXT, .bytes = text};
}

/* NULL for "". */
static inline struct profile_value value_name(const char *name)
{
    return (struct profile_value){.type = name && *name ? VALUE_TEXT : VALUE_NULL, .bytes = name};
}

static inline struct profile_value value_blob(const void *bytes, size_t size)
{
    return (struct profile_value){.type = VALUE_BLOB, .bytes = bytes, .size = size};
}

/* Executes a statement without result rows (see profile_stmt for `sql`) with these parameters, up to
 * VALUE_END. 0 or a negative code. */
int profile_execute(struct profile *p, const char *sql, const struct profile_value *values,
                    struct error *err);
/* The same, with the parameters as arguments. */
#define PROFILE_EXECUTE(p, err, sql, ...) \
    profile_execute(p, sql, (const struct profile_value[]){__VA_ARGS__, {.type = VALUE_END}}, err)
/* The column's number; NaN if it is NULL. */
double profile_column_number(sqlite3_stmt *s, int column);
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
