/* SPDX-License-Identifier: Apache-2.0 */
/* usf-format.h - the events of USF files, shared by traces (usf.c, which describes the format) and samples
 * (usf-samples.c). */
#ifndef CACHEGRAM_TRACE_USF_FORMAT_H
#define CACHEGRAM_TRACE_USF_FORMAT_H

#include "trace/formats.h"

#define USF_MAGIC "USF1" /* with its zero byte */
#define USF_MAGIC_BYTES 5u
#define USF_HEADER_BYTES 32u /* without the strings */
#define USF_HEADER_MAX (UINT32_C(1) << 20)
#define USF_ACCESS_BYTES 29u
#define USF_VERSION 2u

enum { USF_FLAG_TRACE = 1, USF_FLAG_BURST = 2, USF_FLAG_DELTA = 4, USF_FLAG_NATIVE_ENDIAN = 0x80 };
enum { USF_EVENT_SAMPLE, USF_EVENT_DANGLING, USF_EVENT_BURST, USF_EVENT_TRACE };
enum { USF_READ, USF_WRITE, USF_BOTH, USF_UNKNOWN = 9, USF_TYPES = 11 };
#define USF_LENGTH_UNKNOWN UINT16_MAX
#define USF_THREAD_UNKNOWN UINT16_MAX

struct usf_access {
    uint64_t number[3]; /* pc, address, time (a count of accesses) */
    uint16_t thread, length;
    uint8_t type;
};

/* State of a reader or writer. */
struct usf {
    uint32_t flags;
    int burst; /* the next reference begins one */
    char *command;
    struct usf_access last; /* delta coding */
    uint64_t time;          /* writing */
};

/* 1: an access is in the state's `last`; 0: the end, or damage. Negative with err filled. */
int usf_get_access(struct trace_reader *r, struct error *err);

#endif
