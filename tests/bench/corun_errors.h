/* SPDX-License-Identifier: Apache-2.0 */
/* corun_errors.h - lists of relative errors, reported as the paper on StatCC tells them. */
#ifndef CACHEGRAM_CORUN_ERRORS_H
#define CACHEGRAM_CORUN_ERRORS_H

#include <stddef.h>

struct errors {
    double value[4096]; /* absolute */
    size_t n;
};

/* What a model got wrong of a set of results: by the paper's eq. 4, of CPI outright, of miss ratios
 * (absolute). */
struct errors_of_model {
    struct errors equation4, outright, miss;
};

/* Those beyond the room are left out. */
void errors_add(struct errors *e, double value);
double errors_mean(const struct errors *e);
/* The table's head, its first cell `first`, and a row of it: mean, median, 90%, largest, share below 5%. */
void errors_print_head(const char *first);
void errors_print(const char *what, struct errors *e);
/* A model's three rows. */
void errors_print_model(const char *name, struct errors_of_model *e);

#endif
