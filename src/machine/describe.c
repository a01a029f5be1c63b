/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c - descriptions of machines as JSON, parsed by SQLite's JSON functions (already linked). */
#define _GNU_SOURCE
#include "machine/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_FILE (1 << 20)

/* --- writing --- */

static void put_string(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20 || *s >= 0x7f)
            fputs("?", out); /* names of CPUs are ASCII; other bytes must not corrupt the file */
        else
            putc(*s, out);
    }
    putc('"', out);
}

static void put_number(FILE *out, const char *name, double value)
{
    if (isfinite(value))
        fprintf(out, "\"%s\": %.9g", name, value);
    else
        fprintf(out, "\"%s\": null", name);
}

static void put_level(FILE *out, const struct machine_level *level)
{
    fprintf(out, "{\"size_bytes\": %" PRIu64 ", \"ways\": %u, \"shared_by\": %u, ", level->size_bytes,
            level->ways, level->shared_by);
    put_number(out, "latency_cycles", level->latency_cycles);
    fputs(", ", out);
    put_number(out, "latency_ns", level->latency_ns);
    fprintf(out, ", \"measured_bytes\": %" PRIu64 ", \"bandwidth\": [", level->measured_bytes);
    for (size_t i = 0; i < level->nbandwidth; i++) {
        const struct machine_bandwidth *b = &level->bandwidth[i];
        fprintf(out, "%s\n      {\"cores\": %u, ", i ? "," : "", b->cores);
        put_number(out, "read_gbps", b->read_gbps);
        fputs(", ", out);
        put_number(out, "write_gbps", b->write_gbps);
        fputs(", ", out);
        put_number(out, "copy_gbps", b->copy_gbps);
        putc('}', out);
    }
    fputs("]}", out);
}

void machine_write(FILE *out, const struct machine *m)
{
    const struct {
        const char *name, *value;
    } texts[] = {{"name", m->name}, {"cpu", m->cpu}, {"source", m->source}, {"hypervisor", m->hypervisor}};
    fputs("{\n", out);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fprintf(out, "  \"%s\": ", texts[i].name);
        put_string(out, texts[i].value);
        fputs(",\n", out);
    }
    fprintf(out, "  \"cores\": %u,\n  \"line_bytes\": %u,\n  \"in_order\": %d,\n  ", m->cores, m->line_bytes,
            m->in_order);
    put_number(out, "clock_hz", m->clock_hz);
    fputs(",\n  ", out);
    put_number(out, "tsc_hz", m->tsc_hz);
    fputs(",\n  \"levels\": [", out);
    for (uint32_t l = 0; l < m->levels; l++) {
        fputs(l ? ",\n    " : "\n    ", out);
        put_level(out, &m->level[l]);
    }
    fputs("\n  ],\n  \"memory\": ", out);
    put_level(out, &m->memory);
    fputs(",\n  \"latency_curve\": [", out);
    for (size_t i = 0; i < m->ncurve; i++)
        fprintf(out, "%s\n    {\"size_bytes\": %" PRIu64 ", \"ns\": %.4f}", i ? "," : "",
                m->curve[i].size_bytes, m->curve[i].ns);
    fputs("\n  ]\n}\n", out);
}

/* --- reading --- */

struct reader {
    sqlite3 *db;
    sqlite3_stmt *get; /* json_extract of a path */
};

static int step(struct reader *r, const char *path)
{
    sqlite3_reset(r->get);
    return sqlite3_bind_text(r->get, 2, path, -1, SQLITE_TRANSIENT) == SQLITE_OK &&
           sqlite3_step(r->get) == SQLITE_ROW;
}

static double number(struct reader *r, const char *at, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s.%s", at, name);
    if (!step(r, path) || sqlite3_column_type(r->get, 0) == SQLITE_NULL ||
        sqlite3_column_type(r->get, 0) == SQLITE_TEXT)
        return NAN;
    return sqlite3_column_double(r->get, 0);
}

/* Absent, negative or too large values count as unknown. */
static uint64_t whole(struct reader *r, const char *at, const char *name, double most)
{
    double value = number(r, at, name);
    return value >= 0 && value <= most ? (uint64_t)value : 0;
}

static void text(struct reader *r, const char *name, char *into, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "$.%s", name);
    const unsigned char *value = step(r, path) ? sqlite3_column_text(r->get, 0) : NULL;
    snprintf(into, size, "%s", value ? (const char *)value : "");
}

static size_t length(struct reader *r, const char *at)
{
    double n = NAN;
    sqlite3_stmt *count;
    if (sqlite3_prepare_v2(r->db, "SELECT json_array_length(j, ?) FROM d", -1, &count, NULL) == SQLITE_OK) {
        sqlite3_bind_text(count, 1, at, -1, SQLITE_TRANSIENT);
        if (sqlite3_step(count) == SQLITE_ROW)
            n = sqlite3_column_double(count, 0);
    }
    sqlite3_finalize(count);
    return n >= 0 ? (size_t)n : 0;
}

static void get_level(struct reader *r, const char *at, struct machine_level *level)
{
    char path[96];
    level->size_bytes = whole(r, at, "size_bytes", 0x1p60);
    level->ways = (unsigned)whole(r, at, "ways", 1 << 20);
    level->shared_by = (unsigned)whole(r, at, "shared_by", 1 << 20);
    level->latency_cycles = number(r, at, "latency_cycles");
    level->latency_ns = number(r, at, "latency_ns");
    level->measured_bytes = whole(r, at, "measured_bytes", 0x1p60);
    snprintf(path, sizeof path, "%s.bandwidth", at);
    size_t n = length(r, path);
    level->nbandwidth = n < MACHINE_CORES ? n : MACHINE_CORES;
    for (size_t i = 0; i < level->nbandwidth; i++) {
        struct machine_bandwidth *b = &level->bandwidth[i];
        snprintf(path, sizeof path, "%s.bandwidth[%zu]", at, i);
        b->cores = (unsigned)whole(r, path, "cores", 1 << 20);
        b->read_gbps = number(r, path, "read_gbps");
        b->write_gbps = number(r, path, "write_gbps");
        b->copy_gbps = number(r, path, "copy_gbps");
    }
}

static int get_machine(struct reader *r, const char *path, struct machine *m, struct error *err)
{
    char at[64];
    size_t n = length(r, "$.levels");
    *m = (struct machine){.levels = (uint32_t)n};
    if (n == 0 || n > MACHINE_LEVELS)
        return error_set(err, -EINVAL, "'%s' does not describe a machine: it has %zu levels of cache", path,
                         n);
    text(r, "name", m->name, sizeof m->name);
    text(r, "cpu", m->cpu, sizeof m->cpu);
    text(r, "source", m->source, sizeof m->source);
    text(r, "hypervisor", m->hypervisor, sizeof m->hypervisor);
    m->cores = (unsigned)whole(r, "$", "cores", 1 << 20);
    m->line_bytes = (unsigned)whole(r, "$", "line_bytes", 1 << 20);
    m->in_order = (int)whole(r, "$", "in_order", 1); /* 0 in older descriptions, which lack it */
    m->clock_hz = number(r, "$", "clock_hz");
    m->tsc_hz = number(r, "$", "tsc_hz");
    for (uint32_t l = 0; l < m->levels; l++) {
        snprintf(at, sizeof at, "$.levels[%u]", l);
        get_level(r, at, &m->level[l]);
        if (m->level[l].size_bytes == 0)
            return error_set(err, -EINVAL, "'%s' does not describe a machine: cache level %u has no size",
                             path, l + 1);
    }
    get_level(r, "$.memory", &m->memory);
    size_t points = length(r, "$.latency_curve");
    m->ncurve = points < MACHINE_CURVE ? points : MACHINE_CURVE;
    for (size_t i = 0; i < m->ncurve; i++) {
        snprintf(at, sizeof at, "$.latency_curve[%zu]", i);
        m->curve[i].size_bytes = whole(r, at, "size_bytes", 0x1p60);
        m->curve[i].ns = number(r, at, "ns");
    }
    return 0;
}

static char *read_all(const char *path, size_t *size, struct error *err)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        error_set(
            err, -ENOENT,
            "cannot open the machine description '%s': %s (cachegram machine --list shows the built-in ones)",
            path, strerror(errno));
        return NULL;
    }
    char *json = malloc(LARGEST_FILE);
    *size = json ? fread(json, 1, LARGEST_FILE, f) : 0;
    if (!json || ferror(f) || *size == LARGEST_FILE) {
        error_set(err, -EINVAL, "'%s' is not the description of a machine", path);
        free(json);
        json = NULL;
    }
    fclose(f);
    return json;
}

int machine_read(const char *path, struct machine *machine, struct error *err)
{
    struct reader r = {0};
    struct machine got;
    size_t size;
    char *json = read_all(path, &size, err);
    if (!json)
        return errno == ENOENT ? -ENOENT : -EINVAL;
    int code = sqlite3_open(":memory:", &r.db) == SQLITE_OK
                   ? 0
                   : error_set(err, -ENOMEM, "out of memory for SQLite");
    sqlite3_stmt *put = NULL;
    if (code == 0 &&
        (sqlite3_exec(r.db, "CREATE TABLE d(j)", NULL, NULL, NULL) != SQLITE_OK ||
         sqlite3_prepare_v2(r.db, "INSERT INTO d SELECT json(?)", -1, &put, NULL) != SQLITE_OK ||
         sqlite3_bind_text(put, 1, json, (int)size, SQLITE_STATIC) != SQLITE_OK ||
         sqlite3_step(put) != SQLITE_DONE ||
         sqlite3_prepare_v2(r.db, "SELECT json_extract(j, ?2) FROM d", -1, &r.get, NULL) != SQLITE_OK))
        code = error_set(err, -EINVAL, "'%s' is not the description of a machine: %s", path,
                         sqlite3_errmsg(r.db));
    if (code == 0)
        code = get_machine(&r, path, &got, err);
    if (code == 0)
        *machine = got;
    sqlite3_finalize(put);
    sqlite3_finalize(r.get);
    sqlite3_close(r.db);
    free(json);
    return code;
}
