/* SPDX-License-Identifier: Apache-2.0 */
#include "corun_errors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void errors_add(struct errors *e, double value)
{
    if (e->n < sizeof e->value / sizeof e->value[0])
        e->value[e->n++] = fabs(value);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(struct errors *e, double q)
{
    qsort(e->value, e->n, sizeof e->value[0], ascending);
    return e->n ? e->value[(size_t)(q * (double)(e->n - 1) + 0.5)] : NAN;
}

double errors_mean(const struct errors *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += e->value[i];
    return sum / (double)e->n;
}

static double below(const struct errors *e, double limit)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += e->value[i] < limit;
    return (double)n / (double)e->n;
}

void errors_print(const char *what, struct errors *e)
{
    printf("| %s | %.2f | %.2f | %.2f | %.2f | %.0f |\n", what, 100 * errors_mean(e), 100 * quantile(e, 0.5),
           100 * quantile(e, 0.9), 100 * quantile(e, 1), 100 * below(e, 0.05));
}

void errors_print_head(const char *first)
{
    printf("\n| %s | mean %% | median %% | 90%% below %% | worst %% | share below 5%% |\n"
           "| --- | --- | --- | --- | --- | --- |\n",
           first);
}

void errors_print_model(const char *name, struct errors_of_model *e)
{
    const struct {
        const char *of;
        struct errors *errors;
    } rows[] = {{"eq. 4", &e->equation4}, {"CPI outright", &e->outright}, {"miss ratio (points)", &e->miss}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char what[128];
        snprintf(what, sizeof what, "%s, %s", name, rows[i].of);
        errors_print(what, rows[i].errors);
    }
}
