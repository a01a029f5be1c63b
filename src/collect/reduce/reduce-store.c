/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce-store.c - what of the reduced buffers goes into the profile: sites of each burst, code of each
 * process when it ends, and, in full mode, the histograms of the run. Sites of a long run would make the
 * profile too large: then only those of every second burst are kept, later of every fourth.
 */
#include <errno.h>
#include <stdlib.h>
#include "collect/reduce/reduce-internal.h"
#include "collect/tunables.h"
#include "profile/sites.h"

/* Keeps sites of fewer and fewer bursts, to bound the profile's size. */
static int thin_sites(struct reducer *r, struct profile *p, struct error *err)
{
    r->sites_every *= 2;
    return profile_thin_sites(p, r->sites_every, &r->sites_bytes, err);
}

int reduce_tail_touch(struct reducer *r, struct reduce_process *process, uint64_t line,
                      const struct sites_tail_touch *touch, struct error *err)
{
    struct sites_tail_touch of_object = *touch;
    of_object.object =
        process->objects != NULL ? objects_find(process->objects, line, touch->part, touch->site) : 0;
    return sites_take_tail(r->sites, &of_object) == 0
               ? 0
               : error_set(err, -ENOMEM, "out of memory for the sites of a process");
}

int reduce_store_sites(struct reducer *r, struct reduce_process *process, const struct reduced *reduced,
                       struct profile *p, struct error *err)
{
    const uint8_t *bytes;
    size_t size;
    if (!reduced->has_sites)
        return 0;
    if (sites_end(r->sites, process->site_blocks, &bytes, &size) < 0)
        return error_set(err, -ENOMEM, "out of memory for the sites of a process");
    r->sites_bytes += size;
    int status = profile_put_sites_counts(p, reduced->row.id, reduced->row.process, bytes, size, err);
    return status == 0 && r->sites_bytes > COLLECT_SITES_BYTES ? thin_sites(r, p, err) : status;
}

/* Watched lines are touched again by native code, where only the address of the instruction is known. */
static int name_hits(struct reducer *r, const struct reduce_process *process, struct profile *p,
                     const struct code_process *code, struct error *err)
{
    struct profile_hit *hits = NULL;
    size_t n = 0;
    const struct profile_watched watched = {process->id, process->first_watch, process->last_watch};
    int status = watched.last != 0 ? profile_hits(p, &watched, &hits, &n, err) : 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        int64_t site = code_add_place(r->code, code, hits[i].pc);
        if (site >= 0)
            status = profile_set_hit_site(p, hits[i].watch, (uint64_t)site, err);
        else if (site != -ENOENT)
            status = error_set(err, -ENOMEM, "out of memory for the code of a process");
    }
    free(hits);
    return status;
}

int reduce_process_code(struct reducer *r, struct reduce_process *process, struct profile *p,
                        const struct code_process *code, struct error *err)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int status = 0;
    if (process->site_blocks == NULL)
        return 0;
    jit_watch_end(&r->jit, &process->jit);
    if (process->sites != NULL) {
        status = process->parts != NULL ? reduce_slices_end(r, process, &bytes, &size)
                                        : sites_end(process->sites, process->site_blocks, &bytes, &size);
        if (status < 0)
            return error_set(err, -ENOMEM, "out of memory for the sites of a process");
        status = size > 0 ? profile_put_sites_counts(p, 0, process->id, bytes, size, err) : 0;
    }
    if (status == 0 && process->threads != NULL)
        status = thread_stacks_store(process->threads, p, process->id,
                                     r->full_over ? process_stack_distances(process->stack) : NULL, err);
    if (status == 0 &&
        (status = code_add_process(r->code, process->decoder, process->site_blocks, code, &bytes, &size)) < 0)
        error_set(err, status, "out of memory for the code of a process");
    if (status == 0 && process->shape != NULL &&
        (status = code_use_add(r->use, process->shape, process->sharing, code)) < 0)
        error_set(err, status, "out of memory for the code of a process");
    if (status == 0 && process->shape != NULL)
        status = code_use_store(r->use, p, err);
    if (status == 0 && size > 0)
        status = profile_put_blocks(p, process->id, bytes, size, err);
    return status == 0 && r->mode != REDUCE_FULL ? name_hits(r, process, p, code, err) : status;
}

void reduce_describe(const struct reducer *r, struct symbols_code *code)
{
    code->causes = sampled_table_all(r->causes, &code->ncauses);
    code->start_ns = r->start_ns;
    code->growth = r->jit.list;
    code->ngrowth = r->jit.n;
    code->slices = r->slices;
    code->nslices = r->nslices;
    if (r->paths != NULL)
        call_tree_describe(r->paths, code);
    if (r->use != NULL)
        code_use_describe(r->use, code);
}

/* First touches of a sampled line count as distances larger than any cache. */
static int store_sample(const struct reducer *r, struct profile *p, struct error *err)
{
    const struct linesample *sample = r->sample;
    struct hist *h = malloc(sizeof(*h));
    int status = h != NULL ? 0 : error_set(err, -ENOMEM, "out of memory for the histograms");
    if (status == 0)
        status = profile_put_hist(p, 0, PROFILE_HIST_STACK, &sample->stack, err);
    for (unsigned g = 0; g < LINESAMPLE_GROUPS && status == 0; g++) {
        *h = sample->groups[g].stack;
        hist_add(h, UINT64_MAX, sample->groups[g].cold);
        status = profile_put_group(p, g, h, err);
    }
    if (status == 0)
        status = profile_set_number(p, "touches", (double)r->totals.decoded.touches, err);
    free(h);
    return status;
}

int reduce_store(struct reducer *r, struct profile *p, struct error *err)
{
    int status = r->windows != NULL ? windows_store(r->windows, r->finishing, p, err) : 0;
    if (status < 0 || r->mode == REDUCE_BURSTS || !r->distances || !r->news)
        return status;
    r->news = 0;
    if (r->sample != NULL)
        return store_sample(r, p, err);
    for (int kind = 0; kind < PROFILE_HIST_KINDS && status == 0; kind++)
        status = profile_put_hist(p, 0, (enum profile_hist)kind, &r->hist[kind], err);
    return status;
}
