/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where to put programs, for people and scripts. */
#ifndef CACHEGRAM_REPORT_PLACE_H
#define CACHEGRAM_REPORT_PLACE_H

#include <stdio.h>
#include "model/place.h"
#include "report/report.h"

struct report_place {
    const char *const *program; /* names */
    const struct place_problem *problem;
    const struct place_result *result;
};
void report_place(FILE *out, const struct report_place *place, enum report_format format);

#endif
