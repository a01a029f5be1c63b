/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/span.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "machine/breakpoints.h"
#include "pirate/code-place.h"
#include "collect/launch/launch.h"

int span_is_all(const struct span *s)
{
    return !s->from && !s->to;
}

int span_check(const struct span *s, const char *path, struct error *err)
{
    const char *why = path && !span_is_all(s) ? launch_rights(path) : NULL;
    int code = s->from ? code_place_check(s->from, err) : 0;
    if (code == 0 && s->to)
        code = code_place_check(s->to, err);
    if (code == 0 && why)
        code = error_set(err, -EPERM,
                         "%s %s, and would lose them if it were held at its start, as --from and --to need",
                         path, why);
    if (code == 0 && !span_is_all(s) && breakpoints_fire() == 0)
        code = error_set(err, -ENODEV,
                         "--from and --to need breakpoints, which never fire here (the hypervisor of this "
                         "virtual machine ignores the CPU's debug registers): measure the whole run");
    return code;
}

/* Finds both places. own_only: as code_place_find. */
static int find_both(const struct span *s, pid_t pid, int own_only, uint64_t *from, uint64_t *to,
                     struct error *err)
{
    int code = s->from ? code_place_find(pid, s->from, own_only, from, err) : 0;
    return code == 0 && s->to ? code_place_find(pid, s->to, own_only, to, err) : code;
}

/* Finds them in the program itself, or, once its libraries are loaded, in these. */
static int find_held(const struct span *s, struct target *t, uint64_t *from, uint64_t *to, struct error *err)
{
    uint64_t entry;
    if (find_both(s, t->pid, 1, from, to, NULL) == 0)
        return 0;
    int code = code_place_entry(t->pid, &entry, err);
    if (code == 0)
        code = target_hold_until(t, entry, 1, err);
    if (code == 1)
        code = error_set(err, -ESRCH, "the program ended before it started");
    return code == 0 ? find_both(s, t->pid, 0, from, to, err) : code;
}

static int open_both(struct span *s, struct target *t, uint64_t from, uint64_t to, struct error *err)
{
    int code = s->from ? breakpoint_open(&s->begin, t->pid, from, 1, err) : 0;
    if (code == 0 && s->to)
        code = breakpoint_open(&s->end, t->pid, to, !s->from, err);
    if ((code == -EPERM || code == -ENODEV) && t->held && !s->to) {
        s->traced_to = from;
        code = target_may_hold(err);
    }
    return code;
}

int span_arm(struct span *s, struct target *t, struct error *err)
{
    uint64_t from = 0, to = 0;
    int held = t->held;
    if (span_is_all(s))
        return 0;
    int code = held ? find_held(s, t, &from, &to, err) : find_both(s, t->pid, 0, &from, &to, err);
    if (code == 0)
        code = open_both(s, t, from, to, err);
    if (code != 0) {
        span_clear(s);
        if (held) {
            kill(t->pid, SIGKILL);
            target_end_hold(t);
            target_wait(t, UINT64_MAX);
        }
    } else if (!s->traced_to) {
        target_end_hold(t);
    }
    return code;
}

int span_wait_begin(struct span *s, struct target *t, struct error *err)
{
    int code = 0;
    if (s->from && s->traced_to) {
        code = target_hold_until(t, s->traced_to, 0, err);
        target_end_hold(t);
    } else if (s->from) {
        while (code == 0 && breakpoint_count(&s->begin) == 0)
            code = target_wait_event(t, UINT64_MAX);
        s->reached = breakpoint_count(&s->begin) > 0;
        breakpoint_enable(&s->end);
        breakpoint_close(&s->begin); /* otherwise each further execution would take microseconds */
    }
    s->begun = code == 0;
    s->reached |= s->begun;
    return code;
}

int span_is_over(struct span *s)
{
    if (!s->over && s->to && breakpoint_count(&s->end) > 0) {
        s->over = 1;
        breakpoint_close(&s->end);
    }
    return s->over;
}

void span_missed(const struct span *s, char *text, size_t size)
{
    text[0] = '\0';
    if (s->reached && !s->begun)
        snprintf(text, size,
                 "the program had ended before cachegram noticed that it had executed '%s', so nothing "
                 "was measured",
                 s->from);
    else if (s->from && !s->begun)
        snprintf(text, size, "the program never executed '%s', so nothing was measured%s", s->from,
                 s->traced_to ? " (only its first thread was watched, since breakpoints are forbidden here)"
                              : "");
    else if (s->to && !s->over)
        snprintf(text, size, "the program never executed '%s'%s%s%s: measured to the end", s->to,
                 s->from ? " after '" : "", s->from ? s->from : "", s->from ? "'" : "");
}

void span_clear(struct span *s)
{
    breakpoint_close(&s->begin);
    breakpoint_close(&s->end);
}
