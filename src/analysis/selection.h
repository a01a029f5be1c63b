/* SPDX-License-Identifier: Apache-2.0 */
/* selection.h - the processes and the thread of a profile that a question is about. */
#ifndef CACHEGRAM_ANALYSIS_SELECTION_H
#define CACHEGRAM_ANALYSIS_SELECTION_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

struct analysis_selection {
    uint32_t tid;     /* only this thread; 0: all */
    const char *comm; /* only processes whose executable has that base name; NULL: all */
    uint64_t *processes;
    size_t n; /* those that comm selects */
};

/* tid and comm are set. 0, or negative with err; cleared by the caller in both cases. */
int analysis_selection_find(struct profile *p, struct analysis_selection *s, struct error *err);
int analysis_selection_has(const struct analysis_selection *s, uint64_t process, uint32_t tid);
static inline int analysis_selection_is_all(const struct analysis_selection *s)
{
    return s->tid == 0 && s->comm == NULL;
}
/* Nothing was recorded of them: -ENODATA and why, with the executables that there are. name: the profile's
 * file. */
int analysis_selection_refuse(struct profile *p, const char *name, const struct analysis_selection *s,
                              struct error *err);
void analysis_selection_clear(struct analysis_selection *s);

#endif
