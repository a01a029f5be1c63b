/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.h - the part of a profile that attributes references to instructions (docs/format.md, "Code").
 *
 * Counts are of a process' blocks and their references (burst_site). Table `block` maps each of these to a
 * site. A site is an instruction of an image and has frames: its source lines, inlined functions first.
 */
#ifndef CACHEGRAM_PROFILE_SITES_H
#define CACHEGRAM_PROFILE_SITES_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

struct profile_image {
    uint64_t id;
    char *path;     /* "": unknown */
    char *build_id; /* hexadecimal, "": none */
};

/* A line of source, or a function whose lines are unknown. */
struct profile_frame {
    uint64_t id;
    char *function;  /* demangled */
    char *file;      /* "": unknown */
    uint32_t line;   /* 0: unknown */
    int guessed;     /* the compiler gave the instruction no line: the nearest previous one is used */
    uint64_t caller; /* id of the frame into which this one is inlined; 0: none */
    uint32_t column; /* 0: unknown, and wherever only lines count */
};

struct profile_site {
    uint64_t id;
    uint64_t image;
    uint64_t
        offset; /* in the file; PROFILE_SITE_REST: all sites of the image that are not stored separately */
    uint64_t frame;              /* id of the innermost one; 0: unknown */
    uint64_t outer;              /* id of the outermost one: the compiled function */
    uint64_t references, firsts; /* recorded: touches, and of these first touches of a line in their burst */
};
#define PROFILE_SITE_REST UINT64_MAX

/* --- writing --- */
/* burst 0: of a process' whole life (full mode). */
int profile_put_sites_counts(struct profile *p, uint64_t burst, uint64_t process, const uint8_t *bytes,
                             size_t size, struct error *err);
/* Keeps the counts of every `every`th burst only, from the first on; *left: the bytes of these, without those
 * of burst 0, which are all kept. */
int profile_thin_sites(struct profile *p, uint64_t every, uint64_t *left, struct error *err);
/* Replaces existing rows. */
int profile_put_blocks(struct profile *p, uint64_t process, const uint8_t *bytes, size_t size,
                       struct error *err);
/* Watched lines of a process that an instruction known by its address touched again. While a profile is
 * written their sites are numbers of the recorder; by the end they are ids. */
struct profile_hit {
    uint64_t watch;
    uint64_t pc;
    uint64_t site;  /* of profile_hits only; PROFILE_SITE_NONE: not known */
    uint64_t at_ns; /* likewise: since the run's start, if one thread ran */
};
#define PROFILE_SITE_NONE UINT64_MAX
/* Watches with ids from first to last, between which are those of the process: others are not looked at, as
 * there may be very many, and processes, too. NULL: of all processes. free() */
struct profile_watched {
    uint64_t process;
    uint64_t first, last; /* 0: none */
};
int profile_hits(struct profile *p, const struct profile_watched *of, struct profile_hit **hits, size_t *n,
                 struct error *err);
int profile_set_hit_site(struct profile *p, uint64_t watch, uint64_t site, struct error *err);
/* The ids in the structures must be new. */
int profile_add_image(struct profile *p, const struct profile_image *image, struct error *err);
int profile_add_frame(struct profile *p, const struct profile_frame *frame, struct error *err);
int profile_add_site(struct profile *p, const struct profile_site *site, struct error *err);
/* Touches of an object by a site at distances of `lines` or more, up to the next row; kind: "stack" or
 * "first". */
int profile_add_site_distance(struct profile *p, uint64_t site, uint64_t object, const char *kind,
                              uint64_t lines, uint64_t references, struct error *err);

/* Reuses of the victim's line, as its site touched it, at distances of `lines` or more, up to the next of the
 * octaves' edges, of which a random one of the lines touched in between was the other object's, and touched
 * last by the other site. Ids; 0: not known. */
struct profile_cause {
    uint64_t victim_site, victim_object, site, object;
    uint64_t lines, reuses;
};
int profile_add_cause(struct profile *p, const struct profile_cause *cause, struct error *err);

/* Lines of an object that a site brought into a small cache, and the bytes of these that were used before
 * they were evicted: estimated, from `whole` ones that were looked at until then; 0: not known. Ids; object
 * 0: not known. */
struct profile_line_use {
    uint64_t site, object, lines, whole, bytes;
};
int profile_add_line_use(struct profile *p, const struct profile_line_use *use, struct error *err);
/* Of `references` differences of successive addresses of a site at least `same`, more than half, are of so
 * many bytes. */
struct profile_stride {
    uint64_t site;
    int64_t bytes;
    uint64_t references, same;
};
int profile_add_stride(struct profile *p, const struct profile_stride *stride, struct error *err);
/* Likewise of the addresses by which it touched lines first. */
int profile_add_fetch_stride(struct profile *p, const struct profile_stride *stride, struct error *err);
/* References of a site to lines of an object that another thread writes alternately: other bytes (apart), or
 * also the same. Ids; object 0: not known. Estimates, of run.sharing_refs references. */
struct profile_sharing {
    uint64_t site, object, apart, same;
};
int profile_add_sharing(struct profile *p, const struct profile_sharing *sharing, struct error *err);
/* References of a site to lines of an object that miss in 64 sets of 8 lines, but not without sets: of
 * run.conflict_refs that were looked at. Ids; object 0: not known. */
struct profile_conflict {
    uint64_t site, object, references;
};
int profile_add_conflict(struct profile *p, const struct profile_conflict *conflict, struct error *err);

/* --- reading --- */
/* All of them, by site; free() */
int profile_line_uses(struct profile *p, struct profile_line_use **uses, size_t *n, struct error *err);
int profile_strides(struct profile *p, struct profile_stride **strides, size_t *n, struct error *err);
int profile_fetch_strides(struct profile *p, struct profile_stride **strides, size_t *n, struct error *err);
int profile_sharings(struct profile *p, struct profile_sharing **sharings, size_t *n, struct error *err);
int profile_conflicts(struct profile *p, struct profile_conflict **conflicts, size_t *n, struct error *err);
/* All of them, in no order; free() */
int profile_causes(struct profile *p, struct profile_cause **causes, size_t *n, struct error *err);
/* All of them, by id; the caller frees them with the function below. */
int profile_images(struct profile *p, struct profile_image **images, size_t *n, struct error *err);
void profile_images_free(struct profile_image *images, size_t n);
/* The mapped files of all processes, as their table has them; the caller frees by the function below. */
struct profile_module {
    uint64_t id;
    char *path;
};
int profile_modules(struct profile *p, struct profile_module **modules, size_t *n, struct error *err);
void profile_modules_free(struct profile_module *modules, size_t n);
int profile_frames(struct profile *p, struct profile_frame **frames, size_t *n, struct error *err);
void profile_frames_free(struct profile_frame *frames, size_t n);
/* free() */
int profile_sites(struct profile *p, struct profile_site **sites, size_t *n, struct error *err);
/* Calls each for every row of counts, by burst; a negative result ends the loop and is returned. */
int profile_each_site_counts(struct profile *p,
                             int (*each)(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes,
                                         size_t size, struct error *err),
                             void *ctx, struct error *err);

/* --- sites of the references of a block --- */
struct site_map;
/* NULL with err filled. */
struct site_map *site_map_load(struct profile *p, struct error *err);
void site_map_free(struct site_map *m); /* NULL is allowed */
/* Site ids of the block's references. Returns their number; 0: no such block. */
uint32_t site_map_block(const struct site_map *m, uint64_t process, uint64_t block, const uint32_t **sites);
#define SITE_MAP_MOST_BLOCKS (UINT64_C(1) << 20)
/* A number above those of all blocks of the process. */
uint64_t site_map_blocks_end(const struct site_map *m, uint64_t process);
struct site_map_block {
    uint64_t number; /* above those of all before */
    uint32_t n;
    const uint32_t *sites;
};
/* Stores the blocks of the process again, and `more` of them. */
int site_map_append(const struct site_map *m, struct profile *p, uint64_t process,
                    const struct site_map_block *more, size_t n, struct error *err);
/* Stores all again, with site i (below n) replaced by ids[i]. */
int site_map_store(const struct site_map *m, struct profile *p, const uint32_t *ids, size_t n,
                   struct error *err);

#endif
