/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/saved.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/read-text.h"
#include "collect/launch/launch.h"
#include "profile/profile.h"

#define MOST_ARGUMENTS 256

void pirate_command(const struct pirating_options *options, char text[PIRATE_COMMAND])
{
    char line[PIRATE_COMMAND], *argv[MOST_ARGUMENTS + 1];
    text[0] = '\0';
    if (options->argv) {
        launch_quote(options->argv, text, PIRATE_COMMAND);
        return;
    }
    ssize_t got = read_text(line, sizeof line, "/proc/%d/cmdline", options->pid);
    size_t n = 0, used = got > 0 ? (size_t)got : 0;
    for (size_t at = 0; at < used && n < MOST_ARGUMENTS; at += strlen(line + at) + 1)
        argv[n++] = line + at;
    argv[n] = NULL;
    launch_quote(argv, text, PIRATE_COMMAND);
}

/* Is there a profile of this command? Other files are handled by profile_create. */
static int is_of_command(const char *path, const char *command)
{
    char there[PIRATE_COMMAND];
    struct profile *p;
    if (access(path, F_OK) != 0 || profile_open(path, &p, NULL) != 0)
        return 0;
    int same = profile_get(p, "command", there, sizeof there, NULL) == 0 && strcmp(there, command) == 0;
    profile_close(p, 0, NULL);
    return same;
}

/* Writes what `record` would have written to a new profile. */
static int begin(struct profile *p, const char *command, const struct pirating_result *r, struct error *err)
{
    int code = profile_set(p, "command", command, err);
    if (code == 0)
        code = profile_set(p, "mode", "pirate", err);
    if (code == 0)
        code = profile_set_number(p, "line_bytes", r->llc.line_bytes, err);
    if (code == 0)
        code = profile_set_number(p, "exit_status", r->status, err);
    return code;
}

int pirate_profile_possible(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (access(folder, W_OK | X_OK) == 0)
        return 0;
    return error_set(err, -errno, "cannot write a profile into %s: %s", folder, strerror(errno));
}

int pirate_profile_save(const char *path, const char *command, const struct pirating_options *options,
                        const struct pirating_result *r, struct error *err)
{
    struct profile *p;
    const char *by = options->resctrl ? "resctrl" : "pirate";
    int adds = is_of_command(path, command);
    int code = adds ? profile_append(path, &p, err) : profile_create(path, &p, err);
    if (code != 0)
        return code;
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"pirate_llc_bytes", (double)r->llc_bytes},
        {"pirate_private_bytes", (double)r->llc.private_bytes},
        {"pirate_threads", r->threads},
        {"pirate_limit", options->limit},
        {"pirate_alone_bytes", (double)r->alone_bytes},
        {"pirate_stopped_percent", r->stopped_share * 100},
        {"pirate_own_percent", r->cachegram_share * 100},
        {"pirate_interval_ns", options->progress ? (double)options->interval_ns : NAN},
        {"pirate_hit_ns", r->scale.hit_median / r->ticks_per_ns},
        {"pirate_miss_ns", r->scale.miss_median / r->ticks_per_ns},
        {"pirate_threshold_ns", r->scale.threshold / r->ticks_per_ns},
        {"pirate_cpu_seconds", r->cpu_seconds},
        {"pirate_wall_seconds", r->wall_seconds},
        {"pirate_alone_ns_per_unit", r->alone_ns},
        {"pirate_beside_ns_per_unit", r->interference_ns},
    };
    if (!adds)
        code = begin(p, command, r, err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code == 0; i++)
        code = isnan(numbers[i].value)
                   ? profile_unset(p, numbers[i].key, err) /* from an earlier measurement */
                   : profile_set_number(p, numbers[i].key, numbers[i].value, err);
    if (code == 0)
        code = profile_set(p, "pirate_unit", r->unit, err);
    if (code == 0)
        code = profile_set(p, "pirate_notes", r->notes, err);
    if (code == 0)
        code = profile_put_pirates(p, by, r->rows, r->n, err);
    if (code == 0 && !adds) /* a new profile: later failures must not leave an incomplete one */
        code = profile_commit(p, err);
    if (code != 0 && !adds) {
        profile_abandon(p);
        return code;
    }
    int closed = profile_close(p, code == 0 && !adds, code == 0 ? err : NULL);
    return code != 0 ? code : closed;
}
