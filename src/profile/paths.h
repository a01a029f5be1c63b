/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - the part of a profile that says by which calls sites were reached (docs/format.md, "Code"). */
#ifndef CACHEGRAM_PROFILE_PATHS_H
#define CACHEGRAM_PROFILE_PATHS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

/* A call, in the function that the caller's path has called. */
struct profile_path {
    uint64_t id;
    uint64_t caller; /* 0: not known, or there is none */
    uint64_t image;  /* 0: not known */
    uint64_t offset; /* of the call's last byte, as in struct profile_site */
    uint64_t frame;  /* id of the innermost one there; 0: not known */
};

/* Touches by a site that was reached by the path, at stack distances of `lines` or more, or (first) first
 * touches of a line in their burst after so many others; up to the next of the octaves' edges. */
struct profile_site_path {
    uint64_t site, path; /* path 0: not known */
    int first;
    uint64_t lines, references;
};

int profile_add_path(struct profile *p, const struct profile_path *path, struct error *err);
int profile_add_site_path(struct profile *p, const struct profile_site_path *path, struct error *err);
/* All of them, by id; free() */
int profile_paths(struct profile *p, struct profile_path **paths, size_t *n, struct error *err);
/* All of them, by site; free() */
int profile_site_paths(struct profile *p, struct profile_site_path **paths, size_t *n, struct error *err);

#endif
