/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - code and counts of its references: writing and reading. */
#include "profile/sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile/internal.h"

int profile_put_sites_counts(struct profile *p, uint64_t burst, uint64_t process, const uint8_t *bytes,
                             size_t size, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT OR REPLACE INTO burst_site(burst, process, counts) VALUES(?, ?, ?)",
                           value_int(burst), value_int(process), value_blob(bytes, size));
}

int profile_thin_sites(struct profile *p, uint64_t every, uint64_t *left, struct error *err)
{
    int code = PROFILE_EXECUTE(p, err, "DELETE FROM burst_site WHERE burst > 0 AND (burst - 1) % ? <> 0",
                               value_int(every));
    sqlite3_stmt *s =
        code == 0
            ? profile_stmt(p, "SELECT coalesce(sum(length(counts)), 0) FROM burst_site WHERE burst > 0", err)
            : NULL;
    if (!s)
        return code < 0 ? code : -EIO;
    if (sqlite3_step(s) == SQLITE_ROW)
        *left = (uint64_t)sqlite3_column_int64(s, 0);
    else
        code = profile_fail(p, err);
    sqlite3_reset(s);
    return code;
}

int profile_put_blocks(struct profile *p, uint64_t process, const uint8_t *bytes, size_t size,
                       struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT OR REPLACE INTO block(process, sites) VALUES(?, ?)",
                           value_int(process), value_blob(bytes, size));
}

static void take_hit(sqlite3_stmt *s, void *element)
{
    int known = sqlite3_column_type(s, 2) != SQLITE_NULL;
    *(struct profile_hit *)element =
        (struct profile_hit){.watch = (uint64_t)sqlite3_column_int64(s, 0),
                             .pc = (uint64_t)sqlite3_column_int64(s, 1),
                             .site = known ? (uint64_t)sqlite3_column_int64(s, 2) : PROFILE_SITE_NONE,
                             .at_ns = (uint64_t)sqlite3_column_int64(s, 3)};
}

int profile_hits(struct profile *p, const struct profile_watched *of, struct profile_hit **hits, size_t *n,
                 struct error *err)
{
    char sql[320] =
        "SELECT w.id, w.pc, w.site, b.end_ns + coalesce(w.cpu_ns, 0) FROM watch w JOIN burst b ON "
        "b.id = w.burst WHERE w.pc IS NOT NULL";
    const struct profile_rows rows = {.sql = sql, .size = sizeof **hits, .take = take_hit};
    size_t used = strlen(sql);
    if (of)
        snprintf(sql + used, sizeof sql - used,
                 " AND w.id BETWEEN %" PRIu64 " AND %" PRIu64 " AND b.process = %" PRIu64, of->first,
                 of->last, of->process);
    return profile_read_rows(p, &rows, hits, n, err);
}

int profile_set_hit_site(struct profile *p, uint64_t watch, uint64_t site, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "UPDATE watch SET site = ? WHERE id = ?",
                           value_int_if(site != PROFILE_SITE_NONE, site), value_int(watch));
}

int profile_add_image(struct profile *p, const struct profile_image *image, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO image(id, path, build_id) VALUES(?, ?, ?)",
                           value_int(image->id), value_name(image->path), value_name(image->build_id));
}

int profile_add_frame(struct profile *p, const struct profile_frame *frame, struct error *err)
{
    return PROFILE_EXECUTE(
        p, err,
        "INSERT INTO frame(id, function, file, line, guessed, caller, column) VALUES(?, ?, ?, ?, ?, ?, ?)",
        value_int(frame->id), value_name(frame->function), value_name(frame->file), value_id(frame->line),
        value_int(frame->guessed != 0), value_id(frame->caller), value_id(frame->column));
}

int profile_add_site(struct profile *p, const struct profile_site *site, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO site(id, image, offset, frame, outer_frame, refs, first_touches) "
                           "VALUES(?, ?, ?, ?, ?, ?, ?)",
                           value_int(site->id), value_int(site->image),
                           value_int_if(site->offset != PROFILE_SITE_REST, site->offset),
                           value_id(site->frame), value_id(site->outer), value_int(site->references),
                           value_int(site->firsts));
}

int profile_add_site_distance(struct profile *p, uint64_t site, uint64_t object, const char *kind,
                              uint64_t lines, uint64_t references, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO site_distance(site, object, kind, lines, refs) "
                           "VALUES(?, ?, ?, ?, ?)",
                           value_int(site), value_int(object), value_text(kind), value_int(lines),
                           value_int(references));
}

int profile_add_cause(struct profile *p, const struct profile_cause *cause, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO cause(victim_site, victim_object, site, object, lines, refs) "
                           "VALUES(?, ?, ?, ?, ?, ?)",
                           value_int(cause->victim_site), value_int(cause->victim_object),
                           value_int(cause->site), value_int(cause->object), value_int(cause->lines),
                           value_int(cause->reuses));
}

int profile_add_line_use(struct profile *p, const struct profile_line_use *use, struct error *err)
{
    return PROFILE_EXECUTE(p, err,
                           "INSERT INTO line_use(site, object, lines, whole, bytes) VALUES(?, ?, ?, ?, ?)",
                           value_int(use->site), value_int(use->object), value_int(use->lines),
                           value_int(use->whole), value_int(use->bytes));
}

int profile_add_stride(struct profile *p, const struct profile_stride *stride, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO stride(site, bytes, refs, same) VALUES(?, ?, ?, ?)",
                           value_int(stride->site), value_int((uint64_t)stride->bytes),
                           value_int(stride->references), value_int(stride->same));
}

int profile_add_fetch_stride(struct profile *p, const struct profile_stride *stride, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO fetch_stride(site, bytes, refs, same) VALUES(?, ?, ?, ?)",
                           value_int(stride->site), value_int((uint64_t)stride->bytes),
                           value_int(stride->references), value_int(stride->same));
}

int profile_add_sharing(struct profile *p, const struct profile_sharing *sharing, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO sharing(site, object, apart, same) VALUES(?, ?, ?, ?)",
                           value_int(sharing->site), value_int(sharing->object), value_int(sharing->apart),
                           value_int(sharing->same));
}

int profile_add_conflict(struct profile *p, const struct profile_conflict *conflict, struct error *err)
{
    return PROFILE_EXECUTE(p, err, "INSERT INTO conflict(site, object, refs) VALUES(?, ?, ?)",
                           value_int(conflict->site), value_int(conflict->object),
                           value_int(conflict->references));
}

/* --- reading --- */

int profile_line_uses(struct profile *p, struct profile_line_use **uses, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, object, lines, whole, bytes FROM line_use ORDER BY site, object",
        .table = "line_use",
        .size = sizeof **uses,
    };
    return profile_read_rows(p, &rows, uses, n, err);
}

int profile_strides(struct profile *p, struct profile_stride **strides, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, bytes, refs, same FROM stride ORDER BY site",
        .table = "stride",
        .size = sizeof **strides,
    };
    return profile_read_rows(p, &rows, strides, n, err);
}

int profile_fetch_strides(struct profile *p, struct profile_stride **strides, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, bytes, refs, same FROM fetch_stride ORDER BY site",
        .table = "fetch_stride",
        .size = sizeof **strides,
    };
    return profile_read_rows(p, &rows, strides, n, err);
}

int profile_sharings(struct profile *p, struct profile_sharing **sharings, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, object, apart, same FROM sharing ORDER BY site, object",
        .table = "sharing",
        .size = sizeof **sharings,
    };
    return profile_read_rows(p, &rows, sharings, n, err);
}

int profile_conflicts(struct profile *p, struct profile_conflict **conflicts, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT site, object, refs FROM conflict ORDER BY site, object",
        .table = "conflict",
        .size = sizeof **conflicts,
    };
    return profile_read_rows(p, &rows, conflicts, n, err);
}

int profile_causes(struct profile *p, struct profile_cause **causes, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT victim_site, victim_object, site, object, lines, refs FROM cause",
        .table = "cause",
        .size = sizeof **causes,
    };
    return profile_read_rows(p, &rows, causes, n, err);
}

static void take_image(sqlite3_stmt *s, void *element)
{
    *(struct profile_image *)element = (struct profile_image){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                                              .path = profile_column_text(s, 1),
                                                              .build_id = profile_column_text(s, 2)};
}

static void take_module(sqlite3_stmt *s, void *element)
{
    *(struct profile_module *)element = (struct profile_module){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                                                .path = profile_column_text(s, 1)};
}

static void take_frame(sqlite3_stmt *s, void *element)
{
    *(struct profile_frame *)element = (struct profile_frame){.id = (uint64_t)sqlite3_column_int64(s, 0),
                                                              .function = profile_column_text(s, 1),
                                                              .file = profile_column_text(s, 2),
                                                              .line = (uint32_t)sqlite3_column_int64(s, 3),
                                                              .guessed = sqlite3_column_int(s, 4),
                                                              .caller = (uint64_t)sqlite3_column_int64(s, 5),
                                                              .column = (uint32_t)sqlite3_column_int64(s, 6)};
}

static void take_site(sqlite3_stmt *s, void *element)
{
    int rest = sqlite3_column_type(s, 2) == SQLITE_NULL;
    *(struct profile_site *)element =
        (struct profile_site){.id = (uint64_t)sqlite3_column_int64(s, 0),
                              .image = (uint64_t)sqlite3_column_int64(s, 1),
                              .offset = rest ? PROFILE_SITE_REST : (uint64_t)sqlite3_column_int64(s, 2),
                              .frame = (uint64_t)sqlite3_column_int64(s, 3),
                              .outer = (uint64_t)sqlite3_column_int64(s, 4),
                              .references = (uint64_t)sqlite3_column_int64(s, 5),
                              .firsts = (uint64_t)sqlite3_column_int64(s, 6)};
}

static const struct profile_rows image_rows = {
    .sql = "SELECT id, path, build_id FROM image ORDER BY id",
    .size = sizeof(struct profile_image),
    .take = take_image,
    .texts = {offsetof(struct profile_image, path), offsetof(struct profile_image, build_id)},
};

int profile_images(struct profile *p, struct profile_image **images, size_t *n, struct error *err)
{
    return profile_read_rows(p, &image_rows, images, n, err);
}

void profile_images_free(struct profile_image *images, size_t n)
{
    profile_free_rows(&image_rows, images, n);
}

static const struct profile_rows module_rows = {
    .sql = "SELECT id, path FROM module ORDER BY id",
    .size = sizeof(struct profile_module),
    .take = take_module,
    .texts = {offsetof(struct profile_module, path)},
};

int profile_modules(struct profile *p, struct profile_module **modules, size_t *n, struct error *err)
{
    return profile_read_rows(p, &module_rows, modules, n, err);
}

void profile_modules_free(struct profile_module *modules, size_t n)
{
    profile_free_rows(&module_rows, modules, n);
}

static const struct profile_rows frame_rows = {
    .sql = "SELECT id, function, file, line, guessed, caller, column FROM frame ORDER BY id",
    .size = sizeof(struct profile_frame),
    .take = take_frame,
    .texts = {offsetof(struct profile_frame, function), offsetof(struct profile_frame, file)},
};

int profile_frames(struct profile *p, struct profile_frame **frames, size_t *n, struct error *err)
{
    return profile_read_rows(p, &frame_rows, frames, n, err);
}

void profile_frames_free(struct profile_frame *frames, size_t n)
{
    profile_free_rows(&frame_rows, frames, n);
}

int profile_sites(struct profile *p, struct profile_site **sites, size_t *n, struct error *err)
{
    static const struct profile_rows rows = {
        .sql = "SELECT id, image, offset, frame, outer_frame, refs, first_touches FROM site ORDER BY id",
        .size = sizeof **sites,
        .take = take_site,
    };
    return profile_read_rows(p, &rows, sites, n, err);
}

int profile_each_site_counts(struct profile *p,
                             int (*each)(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes,
                                         size_t size, struct error *err),
                             void *ctx, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = SQLITE_DONE, code = 0;
    if (sqlite3_prepare_v2(p->db, "SELECT burst, process, counts FROM burst_site ORDER BY burst, process", -1,
                           &s, NULL) != SQLITE_OK)
        return profile_fail(p, err);
    while (code == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW)
        code = each(ctx, (uint64_t)sqlite3_column_int64(s, 0), (uint64_t)sqlite3_column_int64(s, 1),
                    sqlite3_column_blob(s, 2), (size_t)sqlite3_column_bytes(s, 2), err);
    if (code == 0 && rc != SQLITE_DONE)
        code = profile_fail(p, err);
    sqlite3_finalize(s);
    return code;
}
