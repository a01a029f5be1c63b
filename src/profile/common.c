/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char *const stmt_text[STMT_COUNT] = {
    [STMT_SET] = "INSERT OR REPLACE INTO run(key, value) VALUES(?, ?)",
    [STMT_PROCESS] = "INSERT INTO process(pid, ppid, exe, start_ns) VALUES(?, ?, ?, ?)",
    [STMT_COUNTER] = "INSERT OR REPLACE INTO counter(process, name, value) VALUES(?, ?, ?)",
    [STMT_NATIVE] = "INSERT OR REPLACE INTO native(process, tid, reason, cpu_ns) VALUES(?, ?, ?, ?)",
    [STMT_MODULE] =
        "INSERT INTO module(process, start_addr, end_addr, file_offset, path) VALUES(?, ?, ?, ?, ?)",
    [STMT_BURST] =
        "INSERT INTO burst(process, tid, start_ns, end_ns, cpu_start_ns, cpu_end_ns, refs, loads, "
        "stores, instructions, words, new_blocks, lines, pc, end_code, end_reason, end_detail, weight, "
        "start_refs, refs_per_ns, blocks, near_per_ns, steps, string_hits, gap_ns) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STMT_WATCH] =
        "INSERT INTO watch(burst, address, position, age, outcome_code, outcome, refs, clock_error, cpu_ns, "
        "weight, inside_refs, object) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_OUTCOME] = "UPDATE watch SET outcome_code = ?, outcome = ?, refs = ?, clock_error = ?, cpu_ns = ?,"
                     " inside_refs = ?, pc = ?, tail_refs = ?, tail_lines = ? WHERE id = ?",
    [STMT_WATCH_SITE] = "UPDATE watch SET site = ? WHERE id = ?",
    [STMT_PUT_HIST] = "INSERT OR REPLACE INTO histogram(burst, kind, total, bins) VALUES(?, ?, ?, ?)",
    [STMT_WINDOW] = "INSERT INTO reuse_window(id, start_ref, refs) VALUES(?, ?, ?)",
    [STMT_SAMPLE] = "INSERT INTO reuse_sample(window, ref, distance, line) VALUES(?, ?, ?, ?)",
    [STMT_PIRATE] =
        "INSERT INTO pirate(by, available_bytes, stolen_bytes, valid, intervals, dropped, cpu_ns, units, "
        "ns_per_unit, ns_low, ns_high, ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio, pirate_fetch_ratio, "
        "lost_share) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STMT_SITE_COUNTS] = "INSERT OR REPLACE INTO burst_site(burst, process, counts) VALUES(?, ?, ?)",
    [STMT_BLOCKS] = "INSERT OR REPLACE INTO block(process, sites) VALUES(?, ?)",
    [STMT_IMAGE] = "INSERT INTO image(id, path, build_id) VALUES(?, ?, ?)",
    [STMT_FRAME] = "INSERT INTO frame(id, function, file, line, guessed, caller) VALUES(?, ?, ?, ?, ?, ?)",
    [STMT_SITE] = "INSERT INTO site(id, image, offset, frame, outer_frame, refs, first_touches) "
                  "VALUES(?, ?, ?, ?, ?, ?, ?)",
    [STMT_SITE_DISTANCE] = "INSERT INTO site_distance(site, object, kind, lines, refs) "
                           "VALUES(?, ?, ?, ?, ?)",
    [STMT_OBJECT] = "INSERT INTO object(id, kind, name, module, offset, size, refs, first_touches) "
                    "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_CAUSE] = "INSERT INTO cause(victim_site, victim_object, site, object, lines, refs) "
                   "VALUES(?, ?, ?, ?, ?, ?)",
    [STMT_LINE_USE] = "INSERT INTO line_use(site, object, lines, bytes) VALUES(?, ?, ?, ?)",
    [STMT_STRIDE] = "INSERT INTO stride(site, bytes, refs, same) VALUES(?, ?, ?, ?)",
    [STMT_FIELD] = "INSERT INTO field(id, object, name, type) VALUES(?, ?, ?, ?)",
    [STMT_SITE_FIELD] = "INSERT INTO site_field(site, object, field, lines) VALUES(?, ?, ?, ?)",
    [STMT_SHARING] = "INSERT INTO sharing(site, object, apart, same) VALUES(?, ?, ?, ?)",
    [STMT_PATH] = "INSERT INTO call_path(id, caller, image, offset, frame) "
                  "VALUES(?, nullif(?, 0), nullif(?, 0), ?, nullif(?, 0))",
    [STMT_SITE_PATH] = "INSERT INTO site_path(site, path, kind, lines, refs) VALUES(?, ?, ?, ?, ?)",
    [STMT_CONFLICT] = "INSERT INTO conflict(site, object, refs) VALUES(?, ?, ?)",
    [STMT_OBJECT_FRAME] = "INSERT INTO object_frame(object, depth, module, offset, frame) "
                          "VALUES(?, ?, ?, ?, ?)",
    [STMT_SITE_OBJECT] = "INSERT INTO site_object(site, object, refs) VALUES(?, ?, ?)",
    [STMT_TIME_WINDOW] =
        "INSERT INTO time_window(id, process, tid, kind, start_ns, end_ns, cpu_ns, refs, cold, ticks, bursts,"
        " phase, stack) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_GET_TIME_WINDOW] = "SELECT stack FROM time_window WHERE id = ?",
    [STMT_GET] = "SELECT value FROM run WHERE key = ?",
    [STMT_GET_HIST] = "SELECT total, bins FROM histogram WHERE burst = ? AND kind = ?",
};

int profile_fail(const struct profile *p, struct error *err)
{
    int code = sqlite3_errcode(p->db), failed = 0;
    struct rlimit limit;
    const char *why = sqlite3_errmsg(p->db);
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(err, -EINVAL, "the profile '%s' is damaged (%s): record again, or use a backup",
                         p->path, why);
    case SQLITE_FULL:
        return error_set(err, -ENOSPC,
                         "no space left to write the profile '%s': free some, or choose another "
                         "place with -o",
                         p->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, -EBUSY, "the profile '%s' is locked by another program: try again", p->path);
    case SQLITE_NOMEM:
        return error_set(err, -ENOMEM, "out of memory with the profile '%s'", p->path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return error_set(err, -EACCES, "no permission to write the profile '%s' (%s)", p->path, why);
    case SQLITE_CANTOPEN:
        return error_set(err, -EACCES, "cannot open the profile '%s' or its journal (%s)", p->path, why);
    case SQLITE_IOERR:
        /* SQLite reports full disks only. Its file object remembers what failed, while errno may have
         * changed. */
        if (p->writing)
            sqlite3_file_control(p->db, "main", SQLITE_FCNTL_LAST_ERRNO, &failed);
        if (failed == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0)
            return error_set(
                err, -EFBIG,
                "cannot write the profile '%s': the limit on the size of files (ulimit -f, %llu KB) "
                "is reached; raise it",
                p->path, (unsigned long long)limit.rlim_cur >> 10);
        return error_set(err, -EIO, "cannot %s the profile '%s' (%s): check its disk",
                         p->writing ? "write" : "read", p->path, sqlite3_errstr(code));
    default:
        /* While reading, this is a missing table or column. */
        if (!p->writing)
            return error_set(err, -EINVAL, "the profile '%s' is damaged (%s): record again, or use a backup",
                             p->path, why);
        return error_set(err, -EIO, "cannot write the profile '%s' (%s)", p->path, why);
    }
}

sqlite3_stmt *profile_stmt(struct profile *p, enum profile_stmt which, struct error *err)
{
    sqlite3_stmt *s = p->stmt[which];
    if (s) {
        sqlite3_reset(s);
        sqlite3_clear_bindings(s);
        return s;
    }
    if (sqlite3_prepare_v3(p->db, stmt_text[which], -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK) {
        profile_fail(p, err);
        return NULL;
    }
    p->stmt[which] = s;
    return s;
}

int profile_step(struct profile *p, sqlite3_stmt *s, struct error *err)
{
    int code = sqlite3_step(s) == SQLITE_DONE ? 0 : profile_fail(p, err);
    sqlite3_reset(s);
    return code;
}

void profile_set_kept(struct profile *p, void *kept, void (*release)(void *kept))
{
    if (p->kept)
        p->release(p->kept);
    p->kept = kept;
    p->release = release;
}

void *profile_kept(const struct profile *p)
{
    return p->kept;
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    for (int i = 0; i < STMT_COUNT; i++)
        sqlite3_finalize(p->stmt[i]);
    sqlite3_close(p->db);
    profile_set_kept(p, NULL, NULL);
    moves_keep(&p->moves);
    free(p->journal);
    free(p->path);
    free(p);
}

char *profile_sqlite_name(const char *path)
{
    if (path[0] == '/')
        return strdup(path);
    size_t n = strlen(path);
    char *name = malloc(n + 3);
    if (name) {
        memcpy(name, "./", 2);
        memcpy(name + 2, path, n + 1);
    }
    return name;
}

int profile_has_table(struct profile *p, const char *table, struct error *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(p->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", -1, &s,
                           NULL) != SQLITE_OK)
        return profile_fail(p, err);
    sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    sqlite3_finalize(s);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : profile_fail(p, err);
}
