/* SPDX-License-Identifier: Apache-2.0 */
/* formats.h - the formats there are, a file each. */
#ifndef CACHEGRAM_TRACE_FORMATS_H
#define CACHEGRAM_TRACE_FORMATS_H

#include "trace/internal.h"

extern const struct trace_format trace_format_own;

#endif
