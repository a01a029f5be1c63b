/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of the own format. The first byte chooses: the rest is references, which must come back as they
 * were; or streams, which must decode to references, or to an error, without harm.
 */
#include <stdlib.h>
#include <string.h>
#include "trace/columns.h"

#define MOST 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint64_t address[MOST], pc[MOST], back_address[MOST], back_pc[MOST];
static uint16_t size[MOST], back_size[MOST];
static uint8_t rw[MOST], back_rw[MOST];

static void round_trip(const uint8_t *data, size_t n)
{
    static struct column_encoder *e;
    static struct column_decoder *d;
    struct column_bytes streams[COLUMNS];
    size_t count = 0, bad;
    if (e == NULL) {
        e = column_encoder_new();
        d = column_decoder_new();
    }
    /* A byte of what changes, then the changes: so that few bytes make a long, half-regular trace. */
    uint64_t a = 0, p = 0;
    for (size_t i = 0; i < n && count < MOST; count++) {
        uint8_t what = data[i++];
        for (unsigned bytes = what & 7; bytes > 0 && i < n; bytes--)
            a = a << 8 | data[i++];
        a += what >> 6;
        p += (what & 8) != 0 ? 4 : 0;
        if ((what & 16) != 0)
            p = (p ^ a) & 63;
        address[count] = a;
        pc[count] = p;
        size[count] = (uint16_t)(1 + (what & 7) * (what & 7));
        rw[count] = (what & 32) != 0 ? 2 : 1;
    }
    const struct trace_batch batch = {.n = count, .address = address, .pc = pc, .size = size, .rw = rw};
    column_encoder_reset(e);
    /* In two parts, as a writer does. */
    if (column_encode(e, &batch, 0, count / 2, &bad) != (int64_t)(count / 2) ||
        column_encode(e, &batch, count / 2, count, &bad) != (int64_t)count)
        abort();
    column_encoder_streams(e, streams);
    column_decoder_begin(d, streams);
    for (size_t i = 0; i < count; i += 100)
        if (column_decode(d, count - i < 100 ? count - i : 100, back_address + i, back_pc + i, back_size + i,
                          back_rw + i) != 0)
            abort();
    if (memcmp(address, back_address, count * sizeof(*address)) != 0 ||
        memcmp(pc, back_pc, count * sizeof(*pc)) != 0 ||
        memcmp(size, back_size, count * sizeof(*size)) != 0 || memcmp(rw, back_rw, count) != 0)
        abort();
}

static void garbage(const uint8_t *data, size_t n)
{
    static struct column_decoder *d;
    struct column_bytes streams[COLUMNS];
    if (d == NULL)
        d = column_decoder_new();
    for (unsigned c = 0; c < COLUMNS; c++) {
        size_t part = n > 0 ? *data : 0;
        if (n > 0) {
            data++;
            n--;
        }
        part = part < n ? part : n;
        streams[c] = (struct column_bytes){data, part};
        data += part;
        n -= part;
    }
    column_decoder_begin(d, streams);
    if (column_decode(d, MOST, back_address, back_pc, back_size, back_rw) == 0)
        for (size_t i = 0; i < MOST; i++)
            if (back_size[i] == 0 || (back_rw[i] != TRACE_LOAD && back_rw[i] != TRACE_STORE))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if ((data[0] & 1) != 0)
        round_trip(data + 1, n - 1);
    else
        garbage(data + 1, n - 1);
    return 0;
}
