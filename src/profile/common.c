/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int profile_damaged(struct profile *p, struct error *err, const char *format, ...)
{
    char what[200];
    struct error found;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    error_set(&found, -EBADMSG, "the profile '%s' is damaged (%s): record again, or use a backup", p->path,
              what);
    if (p->damage.text[0] == '\0')
        p->damage = found;
    return error_set(err, -EBADMSG, "%s", found.text);
}

int profile_find_damage(const struct profile *p, struct error *err)
{
    return p->damage.text[0] != '\0' ? error_set(err, -EBADMSG, "%s", p->damage.text) : 0;
}

int profile_fail(struct profile *p, struct error *err)
{
    int code = sqlite3_errcode(p->db), failed = 0;
    struct rlimit limit;
    const char *why = sqlite3_errmsg(p->db);
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return profile_damaged(p, err, "%s", why);
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
        /* Some tables may be missing (docs/format.md): whoever needs one says so. */
        if (!p->writing && strncmp(why, "no such table", strlen("no such table")) == 0)
            return error_set(err, -EINVAL, "the profile '%s' is damaged (%s): record again, or use a backup",
                             p->path, why);
        /* While reading, this is a missing column. */
        if (!p->writing)
            return profile_damaged(p, err, "%s", why);
        return error_set(err, -EIO, "cannot write the profile '%s' (%s)", p->path, why);
    }
}

sqlite3_stmt *profile_stmt(struct profile *p, const char *sql, struct error *err)
{
    size_t i = 0;
    while (p->statements[i].sql && p->statements[i].sql != sql)
        i++;
    assert(i + 1 < PROFILE_STATEMENTS);
    sqlite3_stmt *s = p->statements[i].prepared;
    if (s) {
        sqlite3_reset(s);
        sqlite3_clear_bindings(s);
        return s;
    }
    if (sqlite3_prepare_v3(p->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK) {
        profile_fail(p, err);
        return NULL;
    }
    p->statements[i].sql = sql;
    p->statements[i].prepared = s;
    return s;
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
    for (size_t i = 0; p->statements[i].sql; i++)
        sqlite3_finalize(p->statements[i].prepared);
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
