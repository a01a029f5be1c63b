/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - the part of a profile that says which fields of structures were fetched (docs/format.md,
 * "Data"). */
#ifndef CACHEGRAM_PROFILE_FIELDS_H
#define CACHEGRAM_PROFILE_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

struct profile_field {
    uint64_t id;
    uint64_t object;
    char *name; /* what follows the object's name in an expression, such as "[].position.x"; never NULL */
    char *type; /* of the structure, such as "record"; "": it has no name */
};
/* Lines of an object that a site touched first in some piece of the run, in the field. */
struct profile_site_field {
    uint64_t site, object, field, lines;
};

/* References of a site to that field while another thread writes other bytes of the line. */
struct profile_sharing_field {
    uint64_t site, object, field, references;
};

/* With the id in it, which must be new. */
int profile_add_field(struct profile *p, const struct profile_field *field, struct error *err);
int profile_add_site_field(struct profile *p, const struct profile_site_field *field, struct error *err);
int profile_add_sharing_field(struct profile *p, const struct profile_sharing_field *field,
                              struct error *err);
/* All of them, by id; the caller frees by the function below. */
int profile_fields(struct profile *p, struct profile_field **fields, size_t *n, struct error *err);
void profile_fields_free(struct profile_field *fields, size_t n);
/* All of them, by site and object; free() */
int profile_site_fields(struct profile *p, struct profile_site_field **fields, size_t *n, struct error *err);
int profile_sharing_fields(struct profile *p, struct profile_sharing_field **fields, size_t *n,
                           struct error *err);

#endif
