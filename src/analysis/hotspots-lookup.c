/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-lookup.c - what a table refers to by id. Ids of images and frames are consecutive, from 1 on
 * (symbols/name.c). */
#include "analysis/hotspots.h"

#include "base/array.h"

const struct profile_image *analysis_image_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nimages && h->images[id - 1].id == id ? &h->images[id - 1] : NULL;
}

const struct profile_frame *analysis_frame_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nframes && h->frames[id - 1].id == id ? &h->frames[id - 1] : NULL;
}

const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame)
{
    /* Callers have smaller ids: corrupt profiles cannot cause endless chains. */
    return frame->caller < frame->id ? analysis_frame_of(h, frame->caller) : NULL;
}

const struct profile_object *analysis_object_of(const struct analysis_hotspots *h, uint64_t id)
{
    size_t end = ARRAY_UP_TO(h->data, h->ndata, id, id); /* objects that were never touched have no row */
    return end > 0 && h->data[end - 1].id == id ? &h->data[h->same[end - 1]] : NULL;
}
