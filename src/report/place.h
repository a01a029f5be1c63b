/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - assignments of programs to caches, for people and scripts. */
#ifndef CACHEGRAM_REPORT_PLACE_H
#define CACHEGRAM_REPORT_PLACE_H

#include <stdio.h>
#include "model/cache-assignment.h"
#include "report/base.h"
#include "report/report.h"

struct report_place {
    const struct report_base *bases; /* of each program, including its name */
    uint32_t profiles;               /* the first so many are of different profiles */
    const struct assignment_problem *problem;
    const struct assignment_result *result;
    const struct assignment_result *mean; /* with mean behaviour instead of phases; NULL: there are none */
};
void report_place(FILE *out, const struct report_place *place, enum report_format format);

#endif
