/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h - shared by import and export: converts a trace. */
#ifndef CACHEGRAM_CONVERT_H
#define CACHEGRAM_CONVERT_H

struct convert_options {
    const char *input, *output; /* "-": stdin, stdout */
    const char *from, *to;      /* formats; from may be NULL */
    unsigned line_bytes;        /* for formats of lines */
    int partial;                /* keep what precedes damage or an interrupt */
};

/*
 * Converts, and reports the amount on stderr. The exit status: 0; 1 after a message (damage, a full disk; the
 * output is then deleted, unless `partial` is set and only the input is damaged); 128 + signal.
 */
int convert(const struct convert_options *o);

/* Prints the formats that can be read (or written), one per line with a short description, on stdout. */
void convert_list_formats(int written);
/* Whether a trace can be written in the format of that name. */
int convert_writes(const char *format);

#endif
