/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - what corun, place and predict assume about a program, and where its CPI model comes from. */
#ifndef CACHEGRAM_REPORT_BASE_H
#define CACHEGRAM_REPORT_BASE_H

#include <stdint.h>
#include <stdio.h>

struct report_base {
    const char *program;      /* name */
    double cpi_base, overlap; /* model/statcc.h */
    const char *from;         /* for scripts: "default", "option", "solo" or "profile" */
    const char *why;          /* a clause for people */
    double threads;           /* that work at the same time; 1: one after the other */
};

/* A line or two for each program; one for all of them if they have the same. */
void report_bases_text(FILE *out, const struct report_base *bases, uint32_t n);
/* Members of a JSON object, each preceded by a comma: cpi_base, overlap, base_from, base_why, threads. */
void report_base_json(FILE *out, const struct report_base *base);
/* The first three of them as CSV fields, each preceded by a comma. */
void report_base_csv(FILE *out, const struct report_base *base);

#endif
