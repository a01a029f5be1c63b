/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - writes the profile while the program runs.
 *
 * Problem: the recorder may be killed at any moment, and everything recorded so far must remain readable, in
 * one file. SQLite's rollback journal provides that: the file is always in the state of the last commit, or a
 * reader restores that state from the journal of an interrupted commit. A write-ahead log would leave the
 * newest data in a second file, which users forget to copy.
 *
 * A transaction is always open, begun as IMMEDIATE: readers may read meanwhile, but a second writer
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

#include "profile/names.h"
#include "profile/schema.h"

/* A commit waits so long for readers, then leaves its data to the next one: the collector must not be
 * delayed. */
#define COMMIT_WAIT_MS 50
/* There is no commit after the last one; but a new profile can leave the file to its readers. */
#define CLOSE_WAIT_MS 10000
#define NEW_CLOSE_WAIT_MS 1000
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

static const char set_sql[] = "INSERT OR REPLACE INTO run(key, value) VALUES(?, ?)";

int profile_set(struct profile *p, const char *key, const char *value, struct error *err)
{
    return PROFILE_EXECUTE(p, err, set_sql, value_text(key), value_text(value));
}

int profile_unset(struct profile *p, const char *key, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "DELETE FROM run WHERE key = ?", value_text(key));
}

int profile_set_number(struct profile *p, const char *key, double value, struct error *err)
{
    /* Integers are stored as integers: people who query the file expect 4096, not 4096.0. */
    int whole = value >= -0x1p53 && value <= 0x1p53 && value == (double)(int64_t)value;
    return PROFILE_EXECUTE(p, err, set_sql, value_text(key),
                           whole ? value_int((uint64_t)(int64_t)value) : value_real(value));
}

int profile_add_process(struct profile *p, uint32_t pid, uint32_t ppid, const char *exe, uint64_t start_ns,
                        uint64_t *id, struct error *err)
{
    int code = PROFILE_EXECUTE(p, err, "INSERT INTO process(pid, ppid, exe, start_ns) VALUES(?, ?, ?, ?)",
                               value_int(pid), value_int(ppid), value_text(exe), value_int(start_ns));
    if (code == 0 && id)
        *id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_set_counter(struct profile *p, uint64_t process, const char *name, uint64_t value,
                        struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT OR REPLACE INTO counter(process, name, value) VALUES(?, ?, ?)",
                           value_int(process), value_text(name), value_int(value));
}

int profile_set_native(struct profile *p, uint64_t process, uint32_t tid, const char *reason, uint64_t cpu_ns,
                       struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT OR REPLACE INTO native(process, tid, reason, cpu_ns) VALUES(?, ?, ?, ?)",
                           value_int(process), value_int(tid), value_text(reason), value_int(cpu_ns));
}

int profile_add_module(struct profile *p, uint64_t process, uint64_t start, uint64_t end,
                       uint64_t file_offset, const char *path, struct error *err)
{
    return PROFILE_EXECUTE(
        p, err, "INSERT INTO module(process, start_addr, end_addr, file_offset, path) VALUES(?, ?, ?, ?, ?)",
        value_int(process), value_int(start), value_int(end), value_int(file_offset), value_text(path));
}

int profile_add_burst(struct profile *p, struct profile_burst *burst, struct error *err)
{
    int code = PROFILE_EXECUTE(
        p, err,
        "INSERT INTO burst(process, tid, start_ns, end_ns, cpu_start_ns, cpu_end_ns, refs, loads, "
        "stores, instructions, words, new_blocks, lines, pc, end_code, end_reason, end_detail, weight, "
        "start_refs, refs_per_ns, blocks, near_per_ns, steps, string_hits, gap_ns) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        value_int(burst->process), value_int(burst->tid), value_int(burst->start_ns),
        value_int(burst->end_ns), value_int(burst->cpu_start_ns), value_int(burst->cpu_end_ns),
        value_int(burst->references), value_int(burst->loads), value_int(burst->stores),
        value_int(burst->instructions), value_int(burst->words), value_int(burst->new_blocks),
        value_int(burst->lines), value_int(burst->pc), value_int(burst->end),
        value_text(profile_end_name(burst->end)), value_int(burst->end_detail), value_real(burst->weight),
        value_real(burst->start_refs), value_real(burst->refs_per_ns), value_int(burst->blocks),
        value_real(burst->near_per_ns), value_int(burst->steps), value_real(burst->string_hits),
        value_real(burst->gap_ns));
    if (code == 0)
        burst->id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_add_watch(struct profile *p, struct profile_watch *watch, struct error *err)
{
    int code = PROFILE_EXECUTE(
        p, err,
        "INSERT INTO watch(burst, address, position, age, outcome_code, outcome, refs, clock_error, cpu_ns, "
        "weight, inside_refs, object) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        value_int(watch->burst), value_int(watch->address), value_int(watch->position), value_int(watch->age),
        value_int(watch->outcome), value_text(profile_outcome_name(watch->outcome)), value_real(watch->refs),
        value_real(watch->clock_error), value_real(watch->cpu_ns), value_real(watch->weight),
        value_real(watch->translated_refs), value_id(watch->object));
    if (code == 0)
        watch->id = (uint64_t)sqlite3_last_insert_rowid(p->db);
    return code;
}

int profile_set_outcome(struct profile *p, const struct profile_watch *watch, struct error *err)
{
    int code = PROFILE_EXECUTE(
        p, err,
        "UPDATE watch SET outcome_code = ?, outcome = ?, refs = ?, clock_error = ?, cpu_ns = ?,"
        " inside_refs = ?, pc = ?, tail_refs = ?, tail_lines = ?, tid = ?, own_cpu_ns = ? WHERE id = ?",
        value_int(watch->outcome), value_text(profile_outcome_name(watch->outcome)), value_real(watch->refs),
        value_real(watch->clock_error), value_real(watch->cpu_ns), value_real(watch->translated_refs),
        value_id(watch->pc), value_real(watch->tail_refs), value_real(watch->tail_lines),
        value_id(watch->tid), value_real(watch->own_cpu_ns), value_int(watch->id));
    if (code == 0 && sqlite3_changes(p->db) != 1)
        code = error_set(err, -ENOENT, "the profile '%s' holds no watched line %llu", p->path,
                         (unsigned long long)watch->id);
    return code;
}

static int put_hist(struct profile *p, uint64_t burst, const char *kind, const struct hist *h,
                    struct error *err)
{
    struct packed_hist packed = {.total = 0};
    if (packed_hist_set(&packed, h) < 0)
        return error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
    int code = PROFILE_EXECUTE(
        p, err, "INSERT OR REPLACE INTO histogram(burst, kind, total, bins) VALUES(?, ?, ?, ?)",
        value_int(burst), value_text(kind), value_int(h->total), value_blob(packed.bytes, packed.size));
    packed_hist_clear(&packed);
    return code;
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

static int write_file(const char *name, const unsigned char *bytes, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), code = 0;
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < size && code == 0;) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            code = -errno;
    }
    if (code == 0 && fsync(fd) != 0)
        code = -errno;
    if (close(fd) != 0 && code == 0)
        code = -errno;
    if (code != 0)
        unlink(name);
    return code;
}

/*
 * The last commit, while someone reads the file and does not stop: a new file, with everything, takes its
 * name, and the reader keeps the old one.
 */
static int commit_to_new_file(struct profile *p, struct error *err)
{
    sqlite3_int64 size = 0;
    char *name = NULL;
    unsigned char *bytes = sqlite3_serialize(p->db, "main", &size, 0);
    int code = bytes && asprintf(&name, "%s.%d.part", p->path, (int)getpid()) >= 0 ? 0 : -ENOMEM;
    if (code == 0)
        code = write_file(name, bytes, (size_t)size);
    if (code == 0) {
        /* The rollback removes the journal, which must not be applied to the new file; and our lock: until
         * that file is there, no other writer may take the name. */
        int folder = lock_folder(p->path);
        sqlite3_exec(p->db, "ROLLBACK", NULL, NULL, NULL);
        if (rename(name, p->path) != 0) {
            code = -errno;
            unlink(name);
        }
        unlock_folder(folder);
    }
    sqlite3_free(bytes);
    free(name);
    return code == 0
               ? 0
               : error_set(err, code, "cannot write the profile '%s', which another program is reading: %s",
                           p->path, strerror(-code));
}

int profile_close(struct profile *p, int complete, struct error *err)
{
    if (!p)
        return 0;
    int code = 0;
    if (p->writing) {
        sqlite3_busy_timeout(p->db, p->made ? NEW_CLOSE_WAIT_MS : CLOSE_WAIT_MS);
        if (complete)
            code = profile_set(p, "complete", "yes", err);
        if (code == 0 && !sqlite3_get_autocommit(p->db))
            code = exec(p, "COMMIT", err);
        if (code == -EBUSY && p->made)
            code = commit_to_new_file(p, err);
    }
    profile_free(p);
    return code;
}
