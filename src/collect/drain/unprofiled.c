/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "base/base-name.h"
#include "collect/drain/unprofiled.h"

#define TEXT(macro) #macro
#define TEXT_OF(macro) TEXT(macro)
#define ROOM TEXT_OF(WIRE_ROOM_MB)
#define ERRNOS 4096u /* the kernel's errnos are smaller; a target may have overwritten the value */

/* Reasons without a text are reported elsewhere, or only in a note of the report: a program that installs a
 * seccomp filter has been profiled until then. */
static const struct {
    const char *extent, *why;
} reasons[WIRE_OFF_COUNT] = {
    [WIRE_OFF_CPU] = {"not", "the processor lacks SSE4.2"},
    [WIRE_OFF_MEMORY] = {"not",
                         "its limit on memory (ulimit -v or -d) leaves less than " ROOM " MB, of which "
                         "the agent could take a third, or there is no memory"},
    [WIRE_OFF_TIMER] = {"only partly", "neither perf events nor enough timers were available"},
    [WIRE_OFF_TROUBLE] = {"only partly", "an unexpected fault occurred"},
    [WIRE_OFF_GO] = {"only partly",
                     "the Go runtime, in it or in a library that it loaded, takes over every signal"},
    [WIRE_OFF_EMULATED] = {"not", "run by an emulator, such as Valgrind or qemu"},
    [WIRE_OFF_TRACED] = {"only partly",
                         "traced by a debugger or strace, which would see the agent's signals"},
};

void unprofiled_add(struct unprofiled *u, const struct wire_proc *proc, const char *exe)
{
    uint64_t why = proc->count.disabled;
    if (why == WIRE_OFF_NOT || why >= WIRE_OFF_COUNT)
        return;
    u->by[why].partly += proc->count.bursts > 0;
    if (u->by[why].processes == 0)
        u->by[why].code = why == WIRE_OFF_TIMER ? proc->timer_errno : 0;
    if (u->by[why].processes++ == 0)
        snprintf(u->by[why].name, sizeof(u->by[why].name), "%s", base_name(exe));
}

int unprofiled_next(const struct unprofiled *u, unsigned *why, char *text, size_t size)
{
    while (++*why < WIRE_OFF_COUNT) {
        uint32_t n = u->by[*why].processes;
        if (n == 0 || reasons[*why].why == NULL)
            continue;
        /* without any bursts, "partly" would be wrong */
        const char *extent = u->by[*why].partly == 0  ? "not"
                             : u->by[*why].partly < n ? "not or only partly"
                                                      : reasons[*why].extent;
        int code = u->by[*why].code < ERRNOS ? (int)u->by[*why].code : 0;
        snprintf(text, size, "%u process%s %s profiled (%s%s): %s%s%s%s", n, n == 1 ? " was" : "es were",
                 extent, u->by[*why].name, n == 1 ? "" : ", ...", reasons[*why].why,
                 code != 0 ? " (timer_create: " : "", code != 0 ? strerror(code) : "", code != 0 ? ")" : "");
        return 1;
    }
    return 0;
}
