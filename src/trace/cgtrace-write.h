/* SPDX-License-Identifier: Apache-2.0 */
/* cgtrace-write.h - writes cachegram's format; cgtrace.c reads it and has the table entry. */
#ifndef CACHEGRAM_TRACE_OWN_WRITE_H
#define CACHEGRAM_TRACE_OWN_WRITE_H

#include "trace/internal.h"

/* See struct trace_format. */
int cgtrace_open_write(struct trace_writer *w, struct error *err);
int cgtrace_write(struct trace_writer *w, const struct trace_batch *batch, struct error *err);
int cgtrace_flush(struct trace_writer *w, struct error *err);
int cgtrace_finish(struct trace_writer *w, struct error *err);
void cgtrace_close_write(struct trace_writer *w);

#endif
