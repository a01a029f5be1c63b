/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - reads a profile, also while it is being written.
 *
 * Every reader sees one state of the file: opening begins a read transaction that lasts until the profile is
 * closed. Nothing is written, with one exception: if the writer was killed in the middle of a commit, its
 * journal must be replayed before the file can be read. That is done in place if permitted, otherwise on a
 * copy that exists as long as this process.
 */
#define _GNU_SOURCE
#include "profile/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/names.h"
#include "trace/cgtrace-layout.h"

#define DEFAULT_LINE_BYTES 64
#define MOST_LINE_BYTES (1u << 20)
#define READ_WAIT_MS 10000 /* for a writer in the middle of a commit */

/* The SQLite file header (sqlite.org/fileformat.html), examined here for precise error messages. */
#define HEADER_BYTES 100
#define HEADER_MAGIC "SQLite format 3"
#define HEADER_USER_VERSION 60
#define HEADER_APPLICATION_ID 68

static uint32_t big_endian(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int check_is_file(const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT)
            return error_set(err, -ENOENT,
                             "there is no profile '%s': make it with 'cachegram record', or name "
                             "another file",
                             path);
        return error_set(err, -errno, "cannot read the profile '%s': %s", path, strerror(errno));
    }
    if (S_ISDIR(st.st_mode))
        return error_set(err, -EINVAL, "'%s' is a folder, not a profile: name the file in it", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, -EINVAL, "'%s' is not a regular file, so it cannot be a profile", path);
    if (access(path, R_OK) != 0)
        return error_set(err, -errno, "cannot read the profile '%s': %s", path, strerror(errno));
    return 0;
}

/*
 * Is this a cachegram profile of a version that we read? The bytes are read through SQLite's file object:
 * closing another descriptor of the file would release this process's locks on it (POSIX).
 */
static int check_header(struct profile *p, struct error *err)
{
    unsigned char header[HEADER_BYTES] = {0};
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    if (sqlite3_file_control(p->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
        return error_set(err, -EIO, "cannot read the profile '%s'", p->path);
    if (size == 0)
        return error_set(err, -EINVAL, "the profile '%s' is empty: nothing was recorded into it", p->path);
    int rc = file->pMethods->xRead(file, header, HEADER_BYTES, 0);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return error_set(err, -EIO, "cannot read the profile '%s': check its disk", p->path);
    if (memcmp(header, CGTRACE_MAGIC, strlen(CGTRACE_MAGIC)) == 0)
        return error_set(
            err, -EINVAL,
            "'%s' is a trace, not a profile: 'cachegram stack' prints its miss ratios, 'cachegram "
            "sim' simulates caches",
            p->path);
    size_t magic = size < (sqlite3_int64)sizeof HEADER_MAGIC ? (size_t)size : sizeof HEADER_MAGIC;
    if (memcmp(header, HEADER_MAGIC, magic) != 0)
        return error_set(err, -EINVAL,
                         "'%s' is not a cachegram profile: name a file made by 'cachegram record'", p->path);
    if (size < HEADER_BYTES)
        return error_set(err, -EBADMSG,
                         "the profile '%s' is truncated (%lld bytes): record again, or use a backup", p->path,
                         size);
    if (big_endian(header + HEADER_APPLICATION_ID) != PROFILE_APPLICATION_ID)
        return error_set(err, -EINVAL,
                         "'%s' is an SQLite database, but not a cachegram profile: name a file made by "
                         "'cachegram record'",
                         p->path);
    uint32_t version = big_endian(header + HEADER_USER_VERSION);
    if (version > PROFILE_SCHEMA_VERSION)
        return error_set(err, -EPROTO,
                         "the profile '%s' comes from a newer cachegram (format %" PRIu32
                         ", this one reads %d): update cachegram",
                         p->path, version, PROFILE_SCHEMA_VERSION);
    if (version == 0)
        return profile_damaged(p, err, "no format version");
    if (version < PROFILE_SCHEMA_VERSION)
        return error_set(err, -EPROTO,
                         "the profile '%s' comes from an older cachegram (format %" PRIu32
                         ", this one reads %d): record again",
                         p->path, version, PROFILE_SCHEMA_VERSION);
    return 0;
}

/* One number from a query, 0 or SQLite's error code. */
static int query_number(sqlite3 *db, const char *sql, sqlite3_int64 *value)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(s);
        if (rc == SQLITE_ROW) {
            *value = sqlite3_column_int64(s, 0);
            rc = SQLITE_OK;
        }
    }
    sqlite3_finalize(s);
    return rc;
}

static int check_whole(struct profile *p, struct error *err)
{
    sqlite3_int64 size = 0, pages = 0, page_bytes = 0;
    sqlite3_file *file = NULL;
    if (query_number(p->db, "PRAGMA page_count", &pages) ||
        query_number(p->db, "PRAGMA page_size", &page_bytes))
        return profile_fail(p, err);
    sqlite3_file_control(p->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file->pMethods->xFileSize(file, &size) != SQLITE_OK)
        return error_set(err, -EIO, "cannot read the profile '%s'", p->path);
    /* SQLite rounds the size up to pages, so that it would not notice a truncated last page. */
    if (size < pages * page_bytes)
        return error_set(err, -EBADMSG,
                         "the profile '%s' is truncated (%lld bytes of %lld): record again, or use a backup",
                         p->path, size, pages * page_bytes);

    sqlite3_stmt *s = NULL;
    int code = 0;
    if (sqlite3_prepare_v2(p->db, "PRAGMA quick_check(1)", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW) {
        code = profile_fail(p, err);
    } else {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        if (!text || strcmp(text, "ok") != 0) {
            /* The result may span lines ("*** in database main ***", then the finding). */
            code = profile_damaged(p, err, "its structure");
        }
    }
    sqlite3_finalize(s);
    return code;
}

/*
 * Opens the file `name` and begins to read. 0; or 1: a journal must be replayed first; or an error. An
 * invalid header is an error only if there is no journal.
 */
static int attach(struct profile *p, const char *name, struct error *err)
{
    sqlite3_close(p->db);
    p->db = NULL;
    if (sqlite3_open_v2(name, &p->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return p->db ? profile_fail(p, err)
                     : error_set(err, -ENOMEM, "out of memory with the profile '%s'", p->path);
    int code = check_header(p, err);
    if (code != 0)
        return code;
    sqlite3_extended_result_codes(p->db, 1);
    sqlite3_busy_timeout(p->db, READ_WAIT_MS);
    /* The file may come from anywhere: no code hidden in its schema may run. */
    sqlite3_db_config(p->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(p->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_int64 tables;
    sqlite3_exec(p->db, "BEGIN", NULL, NULL, NULL);
    int rc = query_number(p->db, "SELECT count(*) FROM sqlite_master", &tables);
    if (rc == SQLITE_READONLY_ROLLBACK || rc == SQLITE_READONLY_CANTINIT || (rc & 0xff) == SQLITE_CANTOPEN)
        return 1;
    return rc == SQLITE_OK ? 0 : profile_fail(p, err);
}

/* Lets SQLite replay the journal of `name`; success shows when the file is read afterwards. */
static void recover(const char *name)
{
    sqlite3 *db = NULL;
    sqlite3_int64 tables;
    if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, READ_WAIT_MS);
        query_number(db, "SELECT count(*) FROM sqlite_master", &tables);
    }
    sqlite3_close(db);
}

static int copy_file(const char *from, const char *to)
{
    char block[65536];
    ssize_t n = -1;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in >= 0 && out >= 0) {
        while ((n = read(in, block, sizeof block)) > 0) {
            if (write(out, block, (size_t)n) != n) {
                n = -1;
                break;
            }
        }
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return n == 0 ? 0 : -1;
}

/* The last resort for a profile that may not be written: replays its journal on a copy. */
static int attach_copy(struct profile *p, const char *name, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    char *folder = NULL, *copy = NULL, *copy_journal = NULL, *journal = NULL;
    int code = 1;
    if (asprintf(&folder, "%s/cachegram-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp") < 0)
        folder = NULL;
    if (folder && mkdtemp(folder)) {
        if (asprintf(&copy, "%s/profile", folder) >= 0 &&
            asprintf(&copy_journal, "%s/profile-journal", folder) >= 0 &&
            asprintf(&journal, "%s-journal", name) >= 0 && copy_file(name, copy) == 0 &&
            copy_file(journal, copy_journal) == 0) {
            recover(copy);
            code = attach(p, copy, err);
        }
        /* SQLite keeps its descriptor, so that the copy needs no name. */
        if (copy_journal)
            unlink(copy_journal);
        if (copy)
            unlink(copy);
        rmdir(folder);
    }
    free(folder);
    free(copy);
    free(copy_journal);
    free(journal);
    if (code == 1)
        return error_set(err, -EACCES,
                         "the writer of the profile '%s' was killed, and it can be repaired neither in "
                         "place nor on a copy: copy it and its -journal to a folder of yours",
                         p->path);
    return code;
}

int profile_open(const char *path, struct profile **profile, struct error *err)
{
    if (!path || !*path || !profile)
        return error_set(err, -EINVAL, "the profile needs a file name");
    int code = check_is_file(path, err);
    if (code != 0)
        return code;
    struct profile *p = calloc(1, sizeof *p);
    char *name = profile_sqlite_name(path);
    if (!p || !name || !(p->path = strdup(path))) {
        free(p);
        free(name);
        return error_set(err, -ENOMEM, "out of memory with the profile '%s'", path);
    }
    code = attach(p, name, err);
    if (code == 1) {
        recover(name);
        code = attach(p, name, err);
    }
    if (code == 1)
        code = attach_copy(p, name, err);
    free(name);
    if (code == 0)
        code = check_whole(p, err);
    if (code != 0) {
        profile_free(p);
        return code;
    }
    *profile = p;
    return 0;
}

/* Finds the value of `key`: the statement, or NULL with *code set. */
static sqlite3_stmt *find(struct profile *p, const char *key, int *code, struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, "SELECT value FROM run WHERE key = ?", err);
    if (!s) {
        *code = -EBADMSG;
        return NULL;
    }
    sqlite3_bind_text(s, 1, key, -1, SQLITE_TRANSIENT);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        return s;
    *code = rc == SQLITE_ROW || rc == SQLITE_DONE
                ? error_set(err, -ENOENT, "the profile '%s' lacks the value '%s'", p->path, key)
                : profile_fail(p, err);
    sqlite3_reset(s);
    return NULL;
}

int profile_get(struct profile *p, const char *key, char *value, size_t size, struct error *err)
{
    int code = 0;
    sqlite3_stmt *s = find(p, key, &code, err);
    if (!s)
        return code;
    const char *text = (const char *)sqlite3_column_text(s, 0);
    /* A value longer than the buffer is truncated, as by snprintf: it is only displayed. */
    if (size)
        snprintf(value, size, "%s", text ? text : "");
    sqlite3_reset(s);
    return 0;
}

int profile_get_number(struct profile *p, const char *key, double *value, struct error *err)
{
    int code = 0;
    sqlite3_stmt *s = find(p, key, &code, err);
    if (!s)
        return code;
    const char *text = (const char *)sqlite3_column_text(s, 0);
    char *end = NULL;
    double number = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !isfinite(number)) {
        code = profile_damaged(p, err, "'%s' is not a number", key);
    } else {
        /* The text of a real is rounded to 15 digits. */
        *value = sqlite3_column_double(s, 0);
    }
    sqlite3_reset(s);
    return code;
}

int profile_line_bytes(struct profile *p, unsigned *line_bytes, struct error *err)
{
    double value = DEFAULT_LINE_BYTES;
    int code = profile_get_number(p, "line_bytes", &value, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if (!(value >= 1 && value <= MOST_LINE_BYTES) || value != (unsigned)value)
        return profile_damaged(p, err, "its line size is %g bytes", value);
    *line_bytes = (unsigned)value;
    return 0;
}

static void take_burst(sqlite3_stmt *s, void *element)
{
    *(struct profile_burst *)element = (struct profile_burst){
        .id = (uint64_t)sqlite3_column_int64(s, 0),
        .process = (uint64_t)sqlite3_column_int64(s, 1),
        .tid = (uint32_t)sqlite3_column_int64(s, 2),
        .start_ns = (uint64_t)sqlite3_column_int64(s, 3),
        .end_ns = (uint64_t)sqlite3_column_int64(s, 4),
        .cpu_start_ns = (uint64_t)sqlite3_column_int64(s, 5),
        .cpu_end_ns = (uint64_t)sqlite3_column_int64(s, 6),
        .references = (uint64_t)sqlite3_column_int64(s, 7),
        .loads = (uint64_t)sqlite3_column_int64(s, 8),
        .stores = (uint64_t)sqlite3_column_int64(s, 9),
        .instructions = (uint64_t)sqlite3_column_int64(s, 10),
        .words = (uint64_t)sqlite3_column_int64(s, 11),
        .new_blocks = (uint64_t)sqlite3_column_int64(s, 12),
        .lines = (uint64_t)sqlite3_column_int64(s, 13),
        .pc = (uint64_t)sqlite3_column_int64(s, 14),
        .end = (uint32_t)sqlite3_column_int64(s, 15),
        .end_detail = (uint32_t)sqlite3_column_int64(s, 16),
        .weight = sqlite3_column_double(s, 17),
        .start_refs = profile_column_number(s, 18),
        .refs_per_ns = profile_column_number(s, 19),
        .blocks = (uint64_t)sqlite3_column_int64(s, 20),
        .near_per_ns = profile_column_number(s, 21),
        .steps = (uint64_t)sqlite3_column_int64(s, 22),
        .string_hits = profile_column_number(s, 23),
        .gap_ns = profile_column_number(s, 24),
    };
}

int profile_bursts(struct profile *p, struct profile_burst **bursts, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT id, process, tid, start_ns, end_ns, cpu_start_ns, cpu_end_ns, refs, loads, stores,"
               " instructions, words, new_blocks, lines, pc, end_code, end_detail, weight, start_refs,"
               " refs_per_ns, blocks, near_per_ns, steps, string_hits, gap_ns FROM burst ORDER BY id",
        .size = sizeof **bursts,
        .take = take_burst,
    };
    return profile_read_rows(p, &rows, bursts, n, err);
}

static void take_watch(sqlite3_stmt *s, void *element)
{
    sqlite3_int64 outcome = sqlite3_column_int64(s, 5);
    *(struct profile_watch *)element = (struct profile_watch){
        .id = (uint64_t)sqlite3_column_int64(s, 0),
        .burst = (uint64_t)sqlite3_column_int64(s, 1),
        .address = (uint64_t)sqlite3_column_int64(s, 2),
        .position = (uint64_t)sqlite3_column_int64(s, 3),
        .age = (uint64_t)sqlite3_column_int64(s, 4),
        .outcome = outcome > 0 && outcome < PROFILE_OUTCOMES ? (enum profile_outcome)outcome : PROFILE_OPEN,
        .refs = profile_column_number(s, 6),
        .clock_error = profile_column_number(s, 7),
        .cpu_ns = profile_column_number(s, 8),
        .weight = profile_column_number(s, 9),
        .translated_refs = profile_column_number(s, 10),
        .pc = (uint64_t)sqlite3_column_int64(s, 11),
        .site = (uint64_t)sqlite3_column_int64(s, 12),
        .object = (uint64_t)sqlite3_column_int64(s, 13),
        .tail_refs = profile_column_number(s, 14),
        .tail_lines = profile_column_number(s, 15),
        .tid = (uint32_t)sqlite3_column_int64(s, 16),
        .own_cpu_ns = profile_column_number(s, 17),
    };
}

int profile_watches(struct profile *p, struct profile_watch **watches, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT id, burst, address, position, age, outcome_code, refs, clock_error, cpu_ns, weight,"
               " inside_refs, pc, site, object, tail_refs, tail_lines, tid, own_cpu_ns FROM watch ORDER BY "
               "burst, id",
        .size = sizeof **watches,
        .take = take_watch,
    };
    return profile_read_rows(p, &rows, watches, n, err);
}

static int get_packed(struct profile *p, uint64_t burst, const char *kind, struct packed_hist *h,
                      struct error *err)
{
    sqlite3_stmt *s = profile_stmt(p, "SELECT total, bins FROM histogram WHERE burst = ? AND kind = ?", err);
    if (!s)
        return -EBADMSG;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)burst);
    sqlite3_bind_text(s, 2, kind, -1, SQLITE_STATIC);
    int code = 0, rc = sqlite3_step(s);
    if (rc == SQLITE_DONE) {
        code = error_set(err, -ENOENT, "the profile '%s' holds no '%s' histogram of burst %" PRIu64, p->path,
                         kind, burst);
    } else if (rc != SQLITE_ROW) {
        code = profile_fail(p, err);
    } else {
        uint64_t total = (uint64_t)sqlite3_column_int64(s, 0);
        const uint8_t *bytes = sqlite3_column_blob(s, 1);
        code = packed_hist_copy(h, bytes, (size_t)sqlite3_column_bytes(s, 1));
        if (code == -ENOMEM)
            error_set(err, code, "out of memory reading the profile '%s'", p->path);
        else if (code != 0 || h->total != total)
            code = profile_damaged(p, err, "the '%s' histogram of burst %" PRIu64, kind, burst);
    }
    sqlite3_reset(s);
    return code;
}

static int get_hist(struct profile *p, uint64_t burst, const char *kind, struct hist *h, struct error *err)
{
    struct packed_hist packed = {.total = 0};
    int code = get_packed(p, burst, kind, &packed, err);
    if (code == 0)
        packed_hist_unpack(&packed, h);
    packed_hist_clear(&packed);
    return code;
}

int profile_get_packed_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct packed_hist *h,
                            struct error *err)
{
    return get_packed(p, burst, profile_hist_name(kind), h, err);
}

int profile_get_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct hist *h,
                     struct error *err)
{
    return get_hist(p, burst, profile_hist_name(kind), h, err);
}

int profile_get_sets(struct profile *p, uint64_t burst, unsigned sets, struct hist *h, struct error *err)
{
    char kind[PROFILE_SETS_NAME];
    return get_hist(p, burst, profile_sets_name(sets, kind), h, err);
}

int profile_get_group(struct profile *p, unsigned group, struct hist *h, struct error *err)
{
    char kind[PROFILE_SETS_NAME];
    return get_hist(p, 0, profile_group_name(group, kind), h, err);
}

int profile_counters(struct profile *p, void (*each)(void *ctx, const char *name, uint64_t value), void *ctx,
                     struct error *err)
{
    sqlite3_stmt *s = NULL;
    /* Not sum(), which fails where integers overflow: a program can overwrite its counters. */
    if (sqlite3_prepare_v2(
            p->db, "SELECT name, CAST(total(value) AS INTEGER) FROM counter GROUP BY name ORDER BY name", -1,
            &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        each(ctx, name ? name : "", (uint64_t)sqlite3_column_int64(s, 1));
    }
    int code = rc == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_finalize(s);
    return code;
}

int profile_processes(struct profile *p,
                      void (*each)(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe),
                      void *ctx, struct error *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(p->db, "SELECT id, pid, ppid, exe FROM process ORDER BY id", -1, &s, NULL) !=
        SQLITE_OK)
        return profile_fail(p, err);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *exe = (const char *)sqlite3_column_text(s, 3);
        each(ctx, (uint64_t)sqlite3_column_int64(s, 0), (uint32_t)sqlite3_column_int64(s, 1),
             (uint32_t)sqlite3_column_int64(s, 2), exe ? exe : "");
    }
    int code = rc == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_finalize(s);
    return code;
}
