/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare.c - mappings in reserve. A process may have a limited number of them (vm.max_map_count). A protected
 * page becomes one mapping with inaccessible ones beside it. The program could use up what that saves, and
 * unprotecting the page, which takes two mappings more, would fail. So two more than needed are kept for each
 * protected page. When unprotecting fails they are given up, and no page is protected from then on.
 */
#include "agent/sys/own.h"
#include "agent/sys/sys.h"
#include "agent/watch/watch-internal.h"

#define SPARE_PAGES (2 * WIRE_MAX_WATCHES + 1)

static uint8_t *memory;
static unsigned kept; /* for so many pages: that many read-only pages, each between writable ones */
static int given_up;

static void *guard(unsigned i)
{
    return memory + (2 * (size_t)i + 1) * WIRE_PAGE;
}

int spare_keep(unsigned n)
{
    if (given_up || n > WIRE_MAX_WATCHES)
        return 0;
    if (!memory)
        memory = own_map(NULL, SPARE_PAGES * WIRE_PAGE, OWN_DATA);
    while (memory && kept < n && own_guard(guard(kept)) == 0)
        kept++;
    return kept >= n;
}

int spare_give_up(const void *page)
{
    static uint8_t resident;
    if (given_up || sys_failed(sys3(SYS_mincore, page, WIRE_PAGE, &resident)))
        return 0; /* or it is not mapped */
    given_up = 1;
    for (unsigned i = 0; i < kept; i++)
        own_unguard(guard(i));
    return 1;
}
