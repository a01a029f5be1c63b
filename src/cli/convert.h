/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h - what import and export have in common: one trace in, another out. */
#ifndef CACHEGRAM_CONVERT_H
#define CACHEGRAM_CONVERT_H

struct convert_options {
    const char *input, *output; /* "-": stdin, stdout */
    const char *from, *to;      /* formats; from may be NULL */
    unsigned line_bytes;        /* for formats of lines */
    int partial;                /* keep what came before damage or an interrupt */
};

/*
 * Converts, and reports the amount on stderr. The exit status: 0, 1 after a message (damage, a full disk; the
 * output is then deleted, unless partial and it is only the input that is damaged), 128 + signal.
 */
int convert(const struct convert_options *o);

/* The formats that can be read (or written) with a few words on each, a line each, on stdout. */
void convert_list_formats(int written);

#endif
