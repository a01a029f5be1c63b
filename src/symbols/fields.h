/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - names the fields that were fetched. Used by name.c only. */
#ifndef CACHEGRAM_SYMBOLS_FIELDS_H
#define CACHEGRAM_SYMBOLS_FIELDS_H

#include "base/error.h"
#include "profile/profile.h"
#include "symbols/code.h"
#include "symbols/files.h"

/* Fills the tables field and site_field from code->offsets. ids: of each site of the code its row; 0: none.
 * used: of each object's number, set if the tables refer to it. 0, or negative with err. */
int symbols_fields_store(struct profile *p, const struct symbols_code *code, const uint32_t *ids,
                         struct symbols_files *files, char *used, struct error *err);

#endif
