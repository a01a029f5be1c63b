/* SPDX-License-Identifier: Apache-2.0 */
/* site-map.c - table `block`: for each process and block the sites of its references. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/leb128.h"
#include "profile/internal.h"
#include "profile/sites.h"

struct block {
    uint64_t number;
    uint32_t first, n; /* its sites: [first, first + n) of the map's */
};

struct process {
    uint64_t id;
    size_t first, n; /* its blocks, by number: of the map's */
};

struct site_map {
    struct process *processes; /* by id */
    size_t nprocesses, processes_capacity;
    struct block *blocks;
    size_t nblocks, blocks_capacity;
    uint32_t *sites;
    size_t nsites, sites_capacity;
};

static int add_block(struct site_map *m, uint64_t number, uint64_t n, const uint8_t **at, const uint8_t *end,
                     int64_t *site)
{
    if (ARRAY_GROW(m->blocks, m->nblocks, m->blocks_capacity) < 0)
        return -ENOMEM;
    m->blocks[m->nblocks++] = (struct block){number, (uint32_t)m->nsites, (uint32_t)n};
    for (; n > 0; n--) {
        uint64_t step;
        if (leb128_take(at, end, &step) < 0)
            return -EINVAL;
        *site += unzigzag(step);
        if (*site < 0 || *site >= UINT32_MAX)
            return -EINVAL;
        if (ARRAY_GROW(m->sites, m->nsites, m->sites_capacity) < 0)
            return -ENOMEM;
        m->sites[m->nsites++] = (uint32_t)*site;
    }
    return 0;
}

static int add_process(struct site_map *m, uint64_t id, const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    uint64_t number = 0;
    int64_t site = 0;
    if (ARRAY_GROW(m->processes, m->nprocesses, m->processes_capacity) < 0)
        return -ENOMEM;
    struct process *process = &m->processes[m->nprocesses++];
    *process = (struct process){id, m->nblocks, 0};
    while (at < end) {
        uint64_t step, n;
        if (leb128_take(&at, end, &step) < 0 || leb128_take(&at, end, &n) < 0)
            return -EINVAL;
        number += step;
        if (step >= SITE_MAP_MOST_BLOCKS || number >= SITE_MAP_MOST_BLOCKS || (step == 0 && process->n > 0) ||
            n > 256)
            return -EINVAL;
        int code = add_block(m, number, n, &at, end, &site);
        if (code < 0)
            return code;
        process->n++;
    }
    return 0;
}

struct site_map *site_map_load(struct profile *p, struct error *err)
{
    sqlite3_stmt *s = NULL;
    int rc = SQLITE_DONE, code = 0;
    struct site_map *m = calloc(1, sizeof *m);
    if (!m) {
        error_set(err, -ENOMEM, "out of memory reading the profile '%s'", p->path);
        return NULL;
    }
    if (sqlite3_prepare_v2(p->db, "SELECT process, sites FROM block ORDER BY process", -1, &s, NULL) !=
        SQLITE_OK)
        code = profile_fail(p, err);
    while (code == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(s, 1);
        code =
            add_process(m, (uint64_t)sqlite3_column_int64(s, 0), bytes, (size_t)sqlite3_column_bytes(s, 1));
        if (code == -EINVAL)
            profile_damaged(p, err, "blocks");
        else if (code < 0)
            error_set(err, code, "out of memory reading the profile '%s'", p->path);
    }
    if (code == 0 && rc != SQLITE_DONE)
        code = profile_fail(p, err);
    sqlite3_finalize(s);
    if (code == 0)
        return m;
    site_map_free(m);
    return NULL;
}

void site_map_free(struct site_map *m)
{
    if (!m)
        return;
    free(m->processes);
    free(m->blocks);
    free(m->sites);
    free(m);
}

static const struct process *find_process(const struct site_map *m, uint64_t id)
{
    size_t end = ARRAY_UP_TO(m->processes, m->nprocesses, id, id);
    return end > 0 && m->processes[end - 1].id == id ? &m->processes[end - 1] : NULL;
}

uint32_t site_map_block(const struct site_map *m, uint64_t process, uint64_t block, const uint32_t **sites)
{
    const struct process *of = find_process(m, process);
    const struct block *blocks = of ? m->blocks + of->first : NULL;
    size_t end = of ? ARRAY_UP_TO(blocks, of->n, number, block) : 0;
    if (end == 0 || blocks[end - 1].number != block)
        return 0;
    *sites = m->sites + blocks[end - 1].first;
    return blocks[end - 1].n;
}

uint64_t site_map_blocks_end(const struct site_map *m, uint64_t process)
{
    const struct process *of = find_process(m, process);
    return of && of->n > 0 ? m->blocks[of->first + of->n - 1].number + 1 : 0;
}

/* Bytes of table `block`, as they are written. */
struct writing {
    uint8_t *bytes;
    size_t used;
    uint64_t previous;
    int64_t site;
    const uint32_t *ids; /* NULL: sites are written as they are */
    size_t n;
};

static void put_block(struct writing *w, uint64_t number, const uint32_t *sites, uint32_t n)
{
    w->used += leb128_put(w->bytes + w->used, number - w->previous);
    w->used += leb128_put(w->bytes + w->used, n);
    w->previous = number;
    for (uint32_t k = 0; k < n; k++) {
        int64_t id = !w->ids ? sites[k] : sites[k] < w->n ? w->ids[sites[k]] : 0;
        w->used += leb128_put(w->bytes + w->used, zigzag(id - w->site));
        w->site = id;
    }
}

static int store_process(const struct site_map *m, struct profile *p, const struct process *process,
                         const struct site_map_block *more, size_t nmore, struct writing *w,
                         struct error *err)
{
    const struct block *block = m->blocks + process->first;
    size_t most = 1;
    for (size_t b = 0; b < process->n; b++)
        most += (size_t)LEB128_MOST * (2 + block[b].n);
    for (size_t b = 0; b < nmore; b++)
        most += (size_t)LEB128_MOST * (2 + more[b].n);
    if (!(w->bytes = malloc(most)))
        return error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
    for (size_t b = 0; b < process->n; b++, block++)
        put_block(w, block->number, m->sites + block->first, block->n);
    for (size_t b = 0; b < nmore; b++)
        put_block(w, more[b].number, more[b].sites, more[b].n);
    int code = profile_put_blocks(p, process->id, w->bytes, w->used, err);
    free(w->bytes);
    return code;
}

int site_map_append(const struct site_map *m, struct profile *p, uint64_t process,
                    const struct site_map_block *more, size_t n, struct error *err)
{
    const struct process *of = find_process(m, process);
    struct writing w = {0};
    return of ? store_process(m, p, of, more, n, &w, err) : 0;
}

int site_map_store(const struct site_map *m, struct profile *p, const uint32_t *ids, size_t n,
                   struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < m->nprocesses && code == 0; i++) {
        struct writing w = {.ids = ids, .n = n};
        code = store_process(m, p, &m->processes[i], NULL, 0, &w, err);
    }
    return code;
}
