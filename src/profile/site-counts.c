/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/site-counts.h"
#include <errno.h>
#include "base/leb128.h"

#define MOST_BLOCKS (UINT64_C(1) << 32)

int site_counts_read(const uint8_t *bytes, size_t size, const struct site_counts_reader *reader)
{
    const uint8_t *at = bytes, *end = bytes + size;
    uint64_t block = 0;
    while (at < end) {
        uint64_t step, executions, n;
        if (leb128_take(&at, end, &step) < 0 || leb128_take(&at, end, &executions) < 0 ||
            leb128_take(&at, end, &n) < 0)
            return -EINVAL;
        block += (uint64_t)unzigzag(step);
        if (block >= MOST_BLOCKS || n > size)
            return -EINVAL;
        int status = reader->block(reader->ctx, (uint32_t)block, executions);
        for (; n > 0 && status >= 0; n--) {
            uint64_t reference, what, object, count;
            if (leb128_take(&at, end, &reference) < 0 || leb128_take(&at, end, &what) < 0 ||
                leb128_take(&at, end, &object) < 0 || leb128_take(&at, end, &count) < 0 ||
                reference > UINT8_MAX || what >= SITE_COUNT_END || object > UINT32_MAX)
                return -EINVAL;
            status = reader->entry(reader->ctx, (uint32_t)block, (uint32_t)reference, (uint32_t)what,
                                   (uint32_t)object, count);
        }
        if (status < 0)
            return status;
    }
    return 0;
}
