/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - stack distances of single threads: writing and reading. */
#include "profile/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/packed-hist.h"
#include "profile/internal.h"

int profile_put_thread(struct profile *p, const struct profile_thread *thread, const struct hist *stack,
                       struct error *err)
{
    struct packed_hist packed = {.total = 0};
    if (packed_hist_set(&packed, stack) < 0)
        return error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
    int code = PROFILE_EXECUTE(
        p, err,
        "INSERT OR REPLACE INTO thread_histogram(process, tid, cold, lines_left, total, bins) "
        "VALUES(?, ?, ?, ?, ?, ?)",
        value_int(thread->process), value_int(thread->tid), value_int(thread->cold), value_int(thread->left),
        value_int(stack->total), value_blob(packed.bytes, packed.size));
    packed_hist_clear(&packed);
    return code;
}

/* Unpacks the histogram of the row. */
static int get_stack(struct profile *p, sqlite3_stmt *s, struct hist *stack, struct error *err)
{
    struct packed_hist packed = {.total = 0};
    const uint8_t *bytes = sqlite3_column_blob(s, 5);
    int code = packed_hist_copy(&packed, bytes, (size_t)sqlite3_column_bytes(s, 5));
    if (code == 0 && packed.total == (uint64_t)sqlite3_column_int64(s, 4))
        packed_hist_unpack(&packed, stack);
    else if (code == -ENOMEM)
        error_set(err, code, "out of memory reading the profile '%s'", p->path);
    else
        code =
            profile_damaged(p, err, "the distances of thread %" PRIi64, (int64_t)sqlite3_column_int64(s, 1));
    packed_hist_clear(&packed);
    return code;
}

int profile_threads(struct profile *p,
                    int (*each)(void *ctx, const struct profile_thread *thread, const struct hist *stack),
                    void *ctx, struct error *err)
{
    int code = profile_has_table(p, "thread_histogram", err);
    if (code <= 0)
        return code;
    sqlite3_stmt *s = profile_stmt(p,
                                   "SELECT process, tid, cold, lines_left, total, bins FROM thread_histogram "
                                   "ORDER BY process, tid",
                                   err);
    if (!s)
        return -EBADMSG;
    struct hist *stack = malloc(sizeof *stack);
    int rc = SQLITE_DONE;
    code = stack ? 0 : error_set(err, -ENOMEM, "out of memory reading the profile '%s'", p->path);
    while (code == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const struct profile_thread thread = {.process = (uint64_t)sqlite3_column_int64(s, 0),
                                              .tid = (uint32_t)sqlite3_column_int64(s, 1),
                                              .cold = (uint64_t)sqlite3_column_int64(s, 2),
                                              .left = (uint64_t)sqlite3_column_int64(s, 3)};
        code = get_stack(p, s, stack, err);
        if (code == 0)
            code = each(ctx, &thread, stack);
    }
    if (code == 0 && rc != SQLITE_DONE)
        code = profile_fail(p, err);
    sqlite3_reset(s);
    free(stack);
    return code;
}
