/* SPDX-License-Identifier: Apache-2.0 */
/* site-map.c - table `block`: for each process and block the sites of its references. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/leb128.h"
#include "profile/internal.h"
#include "profile/sites.h"

#define MOST_BLOCKS (UINT64_C(1) << 20)

struct block {
    uint32_t number, first, n; /* its sites: [first, first + n) of the map's */
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

/* Makes space for one more element of that size. 0, or -ENOMEM. */
static int make_room(void *list, size_t used, size_t *capacity, size_t size)
{
    if (used < *capacity)
        return 0;
    size_t more = 2 * *capacity + 64;
    void *old, *grown;
    memcpy(&old, list, sizeof old);
    if ((grown = reallocarray(old, more, size)) == NULL)
        return -ENOMEM;
    memcpy(list, &grown, sizeof grown);
    *capacity = more;
    return 0;
}

static int add_block(struct site_map *m, uint64_t number, uint64_t n, const uint8_t **at, const uint8_t *end,
                     int64_t *site)
{
    if (make_room(&m->blocks, m->nblocks, &m->blocks_capacity, sizeof *m->blocks) < 0)
        return -ENOMEM;
    m->blocks[m->nblocks++] = (struct block){(uint32_t)number, (uint32_t)m->nsites, (uint32_t)n};
    for (; n > 0; n--) {
        uint64_t step;
        if (leb128_take(at, end, &step) < 0)
            return -EINVAL;
        *site += unzigzag(step);
        if (*site < 0 || *site >= UINT32_MAX)
            return -EINVAL;
        if (make_room(&m->sites, m->nsites, &m->sites_capacity, sizeof *m->sites) < 0)
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
    if (make_room(&m->processes, m->nprocesses, &m->processes_capacity, sizeof *m->processes) < 0)
        return -ENOMEM;
    struct process *process = &m->processes[m->nprocesses++];
    *process = (struct process){id, m->nblocks, 0};
    while (at < end) {
        uint64_t step, n;
        if (leb128_take(&at, end, &step) < 0 || leb128_take(&at, end, &n) < 0)
            return -EINVAL;
        number += step;
        if (step >= MOST_BLOCKS || number >= MOST_BLOCKS || (step == 0 && process->n > 0) || n > 256)
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
            error_set(err, code, "the profile '%s' is damaged (blocks): record again, or use a backup",
                      p->path);
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
    size_t low = 0, high = m->nprocesses;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->processes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->nprocesses && m->processes[low].id == id ? &m->processes[low] : NULL;
}

uint32_t site_map_block(const struct site_map *m, uint64_t process, uint64_t block, const uint32_t **sites)
{
    const struct process *of = find_process(m, process);
    size_t low = of ? of->first : 0, end = of ? of->first + of->n : 0, high = end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->blocks[middle].number < block)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || m->blocks[low].number != block)
        return 0;
    *sites = m->sites + m->blocks[low].first;
    return m->blocks[low].n;
}

int site_map_store(const struct site_map *m, struct profile *p, const uint32_t *ids, size_t n,
                   struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < m->nprocesses && code == 0; i++) {
        const struct process *process = &m->processes[i];
        const struct block *block = m->blocks + process->first;
        size_t most = 0, used = 0;
        uint32_t previous = 0;
        int64_t site = 0;
        for (size_t b = 0; b < process->n; b++)
            most += (size_t)LEB128_MOST * (2 + block[b].n);
        uint8_t *bytes = malloc(most + 1);
        if (!bytes)
            return error_set(err, -ENOMEM, "out of memory writing the profile '%s'", p->path);
        for (size_t b = 0; b < process->n; b++, block++) {
            used += leb128_put(bytes + used, block->number - previous);
            used += leb128_put(bytes + used, block->n);
            previous = block->number;
            for (uint32_t k = 0; k < block->n; k++) {
                uint32_t old = m->sites[block->first + k];
                int64_t id = old < n ? ids[old] : 0;
                used += leb128_put(bytes + used, zigzag(id - site));
                site = id;
            }
        }
        code = profile_put_blocks(p, process->id, bytes, used, err);
        free(bytes);
    }
    return code;
}
