/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pirate-profile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "collect/collect.h"

void pirate_profile_unsaved(struct pirating_result *result, const struct pirating_options *options,
                            struct analysis_pirate *r)
{
    *r = (struct analysis_pirate){.rows = result->rows,
                                  .n = result->n,
                                  .llc_bytes = (double)result->llc_bytes,
                                  .private_bytes = (double)result->llc.private_bytes,
                                  .threads = result->threads,
                                  .limit = options->limit,
                                  .stopped_percent = result->stopped_share * 100,
                                  .cachegram_percent = result->cachegram_share * 100,
                                  .cpu_seconds = result->cpu_seconds,
                                  .wall_seconds = result->wall_seconds,
                                  .alone_ns = result->alone_ns,
                                  .with_pirate_ns = result->interference_ns};
    snprintf(r->unit, sizeof r->unit, "%s", result->unit);
    memcpy(r->notes, result->notes, sizeof r->notes);
    result->rows = NULL;
    result->n = 0;
}

int pirate_profile_load(const char *path, struct analysis_pirate *r, struct analysis_curve *curve,
                        struct error *err)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU};
    struct profile *p;
    *curve = (struct analysis_curve){.profile = path};
    curve->points = cli_points(CLI_DEFAULT_SIZES, &curve->n, err);
    int code = curve->points ? profile_open(path, &p, err) : -ENOMEM;
    if (code == 0) {
        code = analysis_pirate_load(p, r, err);
        if (code == 0 && analysis_curve_compute(p, &question, curve, NULL) != 0)
            curve->n = 0; /* the profile has no recording */
        profile_close(p, 0, NULL);
    }
    if (code != 0)
        free(curve->points);
    return code;
}

int pirate_count_references(char **argv, int expected, double *references, struct error *err)
{
    char folder[PATH_MAX], file[PATH_MAX + 16];
    struct collect_result result = {0};
    int code = cli_temporary_folder("pirate", folder, sizeof folder, err);
    if (code < 0)
        return code;
    snprintf(file, sizeof file, "%s/count.db", folder);
    const struct collect_options options = {.output = file,
                                            .version = CACHEGRAM_VERSION,
                                            .full = 1,
                                            .line_bytes = 64,
                                            .follow = 1,
                                            .reduce = COLLECT_REDUCE_COUNTS,
                                            .argv = argv};
    int out = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO),
        nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    int status = collect_run(&options, &result, err);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    close(out);
    close(errors);
    close(nothing);
    unlink(file);
    rmdir(folder);
    if (!result.ran)
        return -EIO;
    if (result.stopped || status != expected) /* after a part of the work */
        return error_set(err, -EINTR,
                         result.stopped ? "references could not be counted: interrupted"
                                        : "references could not be counted: exit status %d instead of %d",
                         status, expected);
    /* Its warning says that there are no distances, as requested here. */
    if (result.trouble.text[0] || result.references == 0)
        return error_set(err, -EIO, "references could not be counted: %s",
                         result.trouble.text[0] ? result.trouble.text : result.warning);
    *references = (double)result.references;
    return 0;
}
