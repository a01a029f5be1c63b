/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jitdumps: whatever the bytes, what was at an address is what a search through all entries finds, in the
 * order of time, and its lines are those of a function there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "symbols/jit-dump.h"

#define NOW (UINT64_C(1) << 40)
#define MOST 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Compares what was at an address with all entries, as they were added. */
static void check(struct jit_entries *e, const struct jit_entry *added, size_t n, uint64_t address)
{
    const uint32_t *list;
    size_t count = jit_entries_at(e, address, &list);
    const struct jit_entry *last = NULL;
    for (size_t i = 0; i < n; i++)
        if (added[i].low <= address && address < added[i].high &&
            (last == NULL || added[i].from_ns >= last->from_ns))
            last = &added[i];
    if ((last != NULL) != (count > 0))
        abort();
    for (size_t i = 0; i < count; i++)
        if (!jit_entries_has(e, list[i], address))
            abort();
    if (count == 0)
        return;
    const char *file;
    if (strcmp(jit_entries_name(e, jit_entries_during(e, list, count, NOW, NOW)), last->name) != 0)
        abort();
    for (size_t i = 0; i < count; i++)
        if (jit_entries_line(e, list[i], address, &file) != 0 && *file == '\0')
            abort();
    if (jit_entries_during_at(e, list, count, 0, 0) >= count ||
        jit_entries_during_at(e, list, count, address, NOW) >= count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int fd = memfd_create("dump", MFD_CLOEXEC);
    struct jit_entries *e = jit_entries_new();
    if (fd < 0 || e == NULL || write(fd, data, n) != (ssize_t)n)
        abort();
    (void)jit_dump_read(e, fd, NOW);
    size_t count = jit_entries_count(e);
    struct jit_entry *added = calloc(count + 1, sizeof *added);
    if (added == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        added[i] = *jit_entries_added(e, i);
    jit_entries_sort(e);
    for (size_t i = 0; i < count && i < MOST; i++) {
        check(e, added, count, added[i].low);
        check(e, added, count, added[i].high - 1);
        check(e, added, count, added[i].high);
    }
    free(added);
    jit_entries_free(e);
    close(fd);
    return 0;
}
