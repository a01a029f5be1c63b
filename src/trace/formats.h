/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - all formats; each is in its own file. */
#ifndef CACHEGRAM_TRACE_FORMATS_H
#define CACHEGRAM_TRACE_FORMATS_H

#include "trace/internal.h"

extern const struct trace_format trace_format_cachegram;
extern const struct trace_format trace_format_lackey;
extern const struct trace_format trace_format_din;
extern const struct trace_format trace_format_csv;
extern const struct trace_format trace_format_drmemtrace;
extern const struct trace_format trace_format_usf;
extern const struct trace_format trace_format_oracle;
extern const struct trace_format trace_format_libcachesim_csv;

#endif
