/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - names the code and data in a profile at the end of a recording, while the programs' files still
 * exist. */
#ifndef CACHEGRAM_SYMBOLS_NAME_H
#define CACHEGRAM_SYMBOLS_NAME_H

#include "base/error.h"
#include "profile/profile.h"
#include "symbols/code.h"

/*
 * Fills the tables image, frame, site, site_distance, object and site_object of a profile that is being
 * written, from its counts of sites (burst_site). Before, table `block` refers to code->sites; afterwards, to
 * rows of `site`. Sites that make up all but a thousandth of the run's references, as the bursts represent
 * them, and all but a thousandth of those at large distances, get a row each; the rest of an image gets one
 * common row. 0, or negative with err.
 */
int symbols_name(struct profile *p, const struct symbols_code *code, struct error *err);

#endif
