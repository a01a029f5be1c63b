/* SPDX-License-Identifier: Apache-2.0 */
/* hotspot-names.h - what rows of a table of hotspots are called, and which of them a user means. */
#ifndef CACHEGRAM_REPORT_HOTSPOT_NAMES_H
#define CACHEGRAM_REPORT_HOTSPOT_NAMES_H

#include "analysis/hotspots.h"
#include "report/shorten.h"

/* A row's name in one piece: "function", "function file:line", "object", or "function, object". */
void report_hotspot_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row, char *text,
                         size_t size);
/* Whether the row is of that function and object, by the names that tables have, a variable's own name, or a
 * pattern (fnmatch). NULL: any. */
int report_hotspot_is(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                      const char *function, const char *object);
/* Whether the row is of code that the compiler has inlined from that function, or from one inlined into it.
 */
int report_hotspot_is_inlined(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                              const char *function);

/* Whether its code has no symbol, and is named by module and offset, such as "libx.so+0x1139". */
int report_hotspot_is_place(const struct analysis_hotspot *row);

/* Parts of names. */

/* The frame that the row is named by: in a table by function that of the function, not of what is inlined
 * into it. NULL: none is known. */
const struct profile_frame *report_hotspot_frame(const struct analysis_hotspots *h,
                                                 const struct analysis_hotspot *row);
/* Its function, or its module if that is not known. */
void report_hotspot_function(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                             char text[REPORT_NAME_ROOM]);
/* Its data object, in a table by field with the field. */
void report_hotspot_data(const struct analysis_hotspot *row, char text[REPORT_NAME_ROOM]);
/* Into which functions the frame was inlined: "f a.c:7 < g b.c:9"; empty: none, or no frame. */
void report_inlined_into(const struct analysis_hotspots *h, const struct profile_frame *frame,
                         char text[REPORT_NAME_ROOM]);
/* A data object; NULL: unknown. */
void report_object_name(const struct profile_object *object, char *text, size_t size);
/* Whether its offset in its module is known. */
int report_object_has_offset(const struct profile_object *object);
/* A field without what comes before it: "position.x" of "[].position.x". */
const char *report_field_name(const struct profile_field *field);
/* A module without its folders. */
const char *report_image_name(const struct profile_image *image);

#endif
