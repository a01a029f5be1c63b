/* SPDX-License-Identifier: Apache-2.0 */
/* own-write.h - writes cachegram's format; own.c reads it and has the table entry. */
#ifndef CACHEGRAM_TRACE_OWN_WRITE_H
#define CACHEGRAM_TRACE_OWN_WRITE_H

#include "trace/internal.h"

/* See struct trace_format. */
int own_open_write(struct trace_writer *w, struct error *err);
int own_write(struct trace_writer *w, const struct trace_batch *batch, struct error *err);
int own_flush(struct trace_writer *w, struct error *err);
int own_finish(struct trace_writer *w, struct error *err);
void own_close_write(struct trace_writer *w);

#endif
