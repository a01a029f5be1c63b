/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - writes the profile while the program runs.
 *
 * Problem: the recorder may be killed at any moment, and everything recorded so far must remain readable, in
 * one file. SQLite's rollback journal provides that: the file is always in the state of the last commit, or a
 * reader restores that state from the journal of an interrupted commit. A write-ahead log would leave the
 * newest data in a second file, which users forget to copy.
 *
 * A transaction is open at all times, begun as IMMEDIATE: readers may read meanwhile, but a second writer
 * sees that the file is in use (then profile_create refuses). Nothing is spilled from the cache before a
 * commit, since a spill would lock readers out until that commit.
 */
#define _GNU_SOURCE
#include "profile/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile/hist-blob.h"
#include "profile/names.h"
#include "profile/schema.h"

/* A commit waits so long for readers, then leaves its data to the next one: the collector must not be
 * delayed. */
#define COMMIT_WAIT_MS 50
/* There is no commit after the last one. */
#define CLOSE_WAIT_MS 10000
/* Another cachegram locks the folder for some milliseconds. */
#define LOCK_WAIT_MS 2000

static int exec(struct profile *p, const char *sql, struct error *err)
{
    return sqlite3_exec(p->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : profile_fail(p, err);
}

static int in_use(const char *name)
{
    sqlite3 *db = NULL;
    int busy = 0;
    if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        /* Also replays a journal that a killed writer left, so that the old file is complete without it. */
        busy = (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) & 0xff) == SQLITE_BUSY;
    }
    sqlite3_close(db);
    return busy;
}

/* Among all processes that create profiles in a folder, only one at a time checks whether a name is free and
 * takes it. Returns a descriptor of the locked folder, or -1 if it cannot be locked: then only O_EXCL
 * protects. */
static int lock_folder(const char *path)
{
    char *folder = strdup(path);
    if (!folder)
        return -1;
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC), tries = LOCK_WAIT_MS;
    free(folder);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || tries-- == 0) {
            close(fd);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return fd;
}

static void unlock_folder(int fd)
{
    if (fd >= 0)
        close(fd);
}

static int cannot_create(const char *path, int code, struct error *err)
{
    return error_set(err, code, "cannot create the profile '%s': %s", path, strerror(-code));
}

/* Renames the file at `path` and its journal: a journal must never be applied to another file. */
static int move_old(struct profile *p, const char *name, struct error *err)
{
    const char *path = p->path;
    struct stat st;
    int code = 0;
    char *old = NULL, *old_journal = NULL;
    if (asprintf(&p->journal, "%s-journal", path) < 0) {
        p->journal = NULL;
        code = -ENOMEM;
    } else if (asprintf(&old, "%s.old", path) < 0) {
        old = NULL;
        code = -ENOMEM;
    } else if (asprintf(&old_journal, "%s.old-journal", path) < 0) {
        old_journal = NULL;
        code = -ENOMEM;
    }
    if (code != 0) {
        error_set(err, code, "out of memory creating the profile '%s'", path);
    } else if (lstat(path, &st) != 0) {
        if (errno != ENOENT)
            code = cannot_create(path, -errno, err);
    } else if (!S_ISREG(st.st_mode)) {
        code = error_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
                         "cannot create the profile '%s': it is %s; name a file with -o", path,
                         S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    } else if (in_use(name)) {
        code = error_set(err, -EBUSY, "another cachegram is writing the profile '%s': choose another with -o",
                         path);
    }
    if (code == 0) {
        int there = lstat(path, &st) == 0;
        /* Nothing may be in the place of the journal either: SQLite would notice only while recording. */
        if (lstat(p->journal, &st) != 0 && errno != ENOENT)
            code = -errno;
        if (code == 0 && there)
            code = moves_rename(&p->moves, old_journal, NULL);
        if (code == 0)
            code = moves_rename(&p->moves, p->journal, there ? old_journal : NULL);
        if (code < 0)
            error_set(err, code, "cannot create the profile '%s': cannot create its journal in '%s': %s",
                      path, p->journal, strerror(-code));
        else if (there && (code = moves_rename(&p->moves, path, old)) < 0)
            error_set(err, code, "cannot move the earlier profile '%s' to '%s': %s", path, old,
                      strerror(-code));
    }
    free(old);
    free(old_journal);
    return code;
}

/* Creates the file, empty. SQLite would report only the error of its second, read-only attempt. */
static int make_file(struct profile *p, const char *name, struct error *err)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return error_set(err, -EBUSY, "another cachegram is writing the profile '%s': choose another with -o",
                         p->path);
    if (fd < 0)
        return cannot_create(p->path, -errno, err);
    close(fd);
    p->made = 1;
    if (sqlite3_open_v2(name, &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        return 0;
    int why = p->db ? sqlite3_system_errno(p->db) : ENOMEM;
    return why ? cannot_create(p->path, -why, err)
               : error_set(err, -EIO, "cannot create the profile '%s': the file could not be opened",
                           p->path);
}

static int begin(struct profile *p, struct error *err)
{
    char pragmas[400], started[32];
    struct tm tm;
    time_t now = time(NULL);
    gmtime_r(&now, &tm);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
    sqlite3_extended_result_codes(p->db, 1);
    sqlite3_busy_timeout(p->db, CLOSE_WAIT_MS);
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA page_size=4096; PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;"
             "PRAGMA cache_spill=OFF; BEGIN IMMEDIATE;"
             "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             PROFILE_APPLICATION_ID, PROFILE_SCHEMA_VERSION);
    /* Schema and header are in one commit, the caller's first: a file that is not empty is a complete
     * profile, and a commit takes a millisecond. That commit is not flushed to the disk (a kill is harmless,
     * a power failure costs a profile without data); all later ones are. */
    int code = exec(p, pragmas, err);
    if (code == 0 && (code = exec(p, profile_schema, err)) == 0 &&
        (code = profile_set(p, "started", started, err)) == 0 &&
        (code = profile_set(p, "complete", "no", err)) == 0)
        sqlite3_busy_timeout(p->db, COMMIT_WAIT_MS);
    return code;
}

/* With the folder locked. */
static void abandon(struct profile *p)
{
    struct moves moves = p->moves;
    p->moves = (struct moves){0};
    if (p->made) {
        unlink(p->path); /* while it is still locked */
        if (p->db && !sqlite3_get_autocommit(p->db))
            sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
        unlink(p->journal);
    }
    profile_free(p);
    moves_undo(&moves);
}

int profile_create(const char *path, struct profile **profile, struct error *err)
{
    if (!path || !*path || !profile)
        return error_set(err, -EINVAL, "the profile needs a file name");
    struct profile *p = calloc(1, sizeof *p);
    char *name = profile_sqlite_name(path);
    if (!p || !name || !(p->path = strdup(path))) {
        free(p);
        free(name);
        return error_set(err, -ENOMEM, "out of memory creating the profile '%s'", path);
    }
    p->writing = 1;
    int folder = lock_folder(path);
    int code = move_old(p, name, err);
    if (code == 0)
        code = make_file(p, name, err);
    if (code == 0)
        code = begin(p, err);
    free(name);
    if (code != 0)
        abandon(p);
    unlock_folder(folder);
    if (code == 0)
        *profile = p;
    return code;
}

void profile_keep(struct profile *p)
{
    moves_keep(&p->moves);
}

void profile_abandon(struct profile *p)
{
    if (!p)
        return;
    int folder = lock_folder(p->path);
    abandon(p);
    unlock_folder(folder);
}

int profile_append(const char *path, struct profile **profile, struct error *err)
{
    struct profile *p;
    int code = profile_open(path, &p, err); /* reports an invalid file */
    if (code != 0)
        return code;
    char *name = profile_sqlite_name(path);
    sqlite3_close(p->db);
    p->db = NULL;
    p->writing = 1;
    if (!name)
        code = error_set(err, -ENOMEM, "out of memory with the profile '%s'", path);
    else if (sqlite3_open_v2(name, &p->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        code = p->db ? profile_fail(p, err)
                     : error_set(err, -ENOMEM, "out of memory with the profile '%s'", path);
    free(name);
    if (code == 0) {
        sqlite3_extended_result_codes(p->db, 1);
        sqlite3_busy_timeout(p->db, COMMIT_WAIT_MS);
        code = exec(p, "PRAGMA cache_spill=OFF; BEGIN IMMEDIATE;", err);
    }
    if (code != 0) {
        profile_free(p);
        return code;
    }
    *profile = p;
    return 0;
}

int profile_set(struct profile *p, const char *key, const char *value, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SET, err);
    if (!s)
        return -EIO;
    sqlite3_bind_text(s, 1, key, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 2, value, -1, SQLITE_TRANSIENT);
    return profile_step(p, s, err);
}

int profile_unset(struct profile *p, const char *key, struct error *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(p->db, "DELETE FROM run WHERE key = ?", -1, &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    int code = sqlite3_step(s) == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_finalize(s);
    return code;
}

int profile_set_number(struct profile *p, const char *key, double value, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_SET, err);
    if (!s)
        return -EIO;
    sqlite3_bind_text(s, 1, key, -1, SQLITE_TRANSIENT);
    /* Integers are stored as integers: people who query the file expect 4096, not 4096.0. */
    if (value >= -0x1p53 && value <= 0x1p53 && value == (double)(sqlite3_int64)value)
        sqlite3_bind_int64(s, 2, (sqlite3_int64)value);
    else
        sqlite3_bind_double(s, 2, value);
    return profile_step(p, s, err);
}

int profile_add_process(struct profile *p, uint32_t pid, uint32_t ppid, const char *exe, uint64_t start_ns,
                        uint64_t *id, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_PROCESS, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, pid);
    sqlite3_bind_int64(s, 2, ppid);
    sqlite3_bind_text(s, 3, exe, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)start_ns);
    int code = profile_step(p, s, err);
    if (code == 0 && id)
        *id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_set_counter(struct profile *p, uint64_t process, const char *name, uint64_t value,
                        struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_COUNTER, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)process);
    sqlite3_bind_text(s, 2, name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)value);
    return profile_step(p, s, err);
}

int profile_set_native(struct profile *p, uint64_t process, uint32_t tid, const char *reason, uint64_t cpu_ns,
                       struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_NATIVE, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)process);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)tid);
    sqlite3_bind_text(s, 3, reason, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)cpu_ns);
    return profile_step(p, s, err);
}

int profile_add_module(struct profile *p, uint64_t process, uint64_t start, uint64_t end,
                       uint64_t file_offset, const char *path, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_MODULE, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)process);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)start);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)end);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)file_offset);
    sqlite3_bind_text(s, 5, path, -1, SQLITE_TRANSIENT);
    return profile_step(p, s, err);
}

int profile_add_burst(struct profile *p, struct profile_burst *burst, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_BURST, err);
    if (!s)
        return -EIO;
    const uint64_t integers[] = {
        burst->process,    burst->tid,        burst->start_ns, burst->end_ns, burst->cpu_start_ns,
        burst->cpu_end_ns, burst->references, burst->loads,    burst->stores, burst->instructions,
        burst->words,      burst->new_blocks, burst->lines,    burst->pc,     burst->end,
    };
    int column = 0;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        sqlite3_bind_int64(s, ++column, (sqlite3_int64)integers[i]);
    sqlite3_bind_text(s, ++column, profile_end_name(burst->end), -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, ++column, burst->end_detail);
    sqlite3_bind_double(s, ++column, burst->weight);
    sqlite3_bind_double(s, ++column, burst->start_refs); /* NaN is stored as NULL */
    sqlite3_bind_double(s, ++column, burst->refs_per_ns);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)burst->blocks);
    sqlite3_bind_double(s, ++column, burst->near_per_ns);
    sqlite3_bind_int64(s, ++column, (sqlite3_int64)burst->steps);
    sqlite3_bind_double(s, ++column, burst->string_hits);
    sqlite3_bind_double(s, ++column, burst->gap_ns);
    int code = profile_step(p, s, err);
    if (code == 0)
        burst->id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_add_watch(struct profile *p, struct profile_watch *watch, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_WATCH, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)watch->burst);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)watch->address);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)watch->position);
    sqlite3_bind_int64(s, 4, (sqlite3_int64)watch->age);
    sqlite3_bind_int64(s, 5, (sqlite3_int64)watch->outcome);
    sqlite3_bind_text(s, 6, profile_outcome_name(watch->outcome), -1, SQLITE_STATIC);
    sqlite3_bind_double(s, 7, watch->refs);
    sqlite3_bind_double(s, 8, watch->clock_error);
    sqlite3_bind_double(s, 9, watch->cpu_ns);
    sqlite3_bind_double(s, 10, watch->weight);
    sqlite3_bind_double(s, 11, watch->translated_refs);
    profile_bind_id(s, 12, watch->object);
    int code = profile_step(p, s, err);
    if (code == 0)
        watch->id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_set_outcome(struct profile *p, const struct profile_watch *watch, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_OUTCOME, err);
    if (!s)
        return -EIO;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)watch->outcome);
    sqlite3_bind_text(s, 2, profile_outcome_name(watch->outcome), -1, SQLITE_STATIC);
    sqlite3_bind_double(s, 3, watch->refs);
    sqlite3_bind_double(s, 4, watch->clock_error);
    sqlite3_bind_double(s, 5, watch->cpu_ns);
    sqlite3_bind_double(s, 6, watch->translated_refs);
    profile_bind_id(s, 7, watch->pc);
    sqlite3_bind_double(s, 8, watch->tail_refs);
    sqlite3_bind_double(s, 9, watch->tail_lines);
    sqlite3_bind_int64(s, 10, (sqlite3_int64)watch->id);
    int code = profile_step(p, s, err);
    if (code == 0 && sqlite3_changes(p->db) != 1)
        code = error_set(err, -ENOENT, "the profile '%s' holds no watched line %llu", p->path,
                         (unsigned long long)watch->id);
    return code;
}

static int put_hist(struct profile *p, uint64_t burst, const char *kind, const struct hist *h,
                    struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, STMT_PUT_HIST, err);
    if (!s)
        return -EIO;
    size_t size;
    unsigned char *bytes = hist_blob_encode(h, &size);
    if (!bytes)
        return error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)burst);
    sqlite3_bind_text(s, 2, kind, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)h->total);
    sqlite3_bind_blob64(s, 4, bytes, size, free);
    return profile_step(p, s, err);
}

int profile_put_hist(struct profile *p, uint64_t burst, enum profile_hist kind, const struct hist *h,
                     struct error *err)
{
    return put_hist(p, burst, profile_hist_name(kind), h, err);
}

int profile_put_sets(struct profile *p, uint64_t burst, unsigned sets, const struct hist *h,
                     struct error *err)
{
    char kind[PROFILE_SETS_NAME];
    return put_hist(p, burst, profile_sets_name(sets, kind), h, err);
}

int profile_put_group(struct profile *p, unsigned group, const struct hist *h, struct error *err)
{
    char kind[PROFILE_SETS_NAME];
    return put_hist(p, 0, profile_group_name(group, kind), h, err);
}

int profile_commit(struct profile *p, struct error *err)
{
    /* After a full disk or the like SQLite has rolled back by itself, and no transaction is open. */
    if (!sqlite3_get_autocommit(p->db)) {
        int rc = sqlite3_exec(p->db, "COMMIT", NULL, NULL, NULL);
        if ((rc & 0xff) == SQLITE_BUSY)
            return 0; /* a reader is active: everything stays for the next commit */
        if (rc != SQLITE_OK) {
            int code = profile_fail(p, err);
            if (!sqlite3_get_autocommit(p->db))
                sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
            sqlite3_exec(p->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
            return code;
        }
    }
    return exec(p, "PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE", err);
}

int profile_close(struct profile *p, int complete, struct error *err)
{
    if (!p)
        return 0;
    int code = 0;
    if (p->writing) {
        sqlite3_busy_timeout(p->db, CLOSE_WAIT_MS);
        if (complete)
            code = profile_set(p, "complete", "yes", err);
        if (code == 0 && !sqlite3_get_autocommit(p->db))
            code = exec(p, "COMMIT", err);
    }
    profile_free(p);
    return code;
}
