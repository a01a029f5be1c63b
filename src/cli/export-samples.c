/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export-samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "profile/profile.h"
#include "trace/usf-samples.h"

/* *line_bytes and *s from the profile; the caller clears *s. */
static int load(struct profile *p, const char *path, double *line_bytes, struct usf_samples *s,
                struct error *err)
{
    struct profile_window *windows = NULL;
    struct profile_sample *samples = NULL;
    char mode[32];
    int code = profile_get(p, "mode", mode, sizeof mode, err);
    if (code == 0 && strcmp(mode, "sparse") != 0)
        code = error_set(err, -EINVAL,
                         "%s is of mode %s: only profiles made by 'cachegram sample' hold sparse samples",
                         path, mode);
    if (code == 0)
        code = profile_get_number(p, "line_bytes", line_bytes, err);
    if (code == 0)
        code = profile_windows(p, &windows, &s->nwindows, err);
    if (code == 0)
        code = profile_samples(p, &samples, &s->nsamples, err);
    if (code == 0) {
        s->window = calloc(s->nwindows + 1, sizeof *s->window);
        s->sample = calloc(s->nsamples + 1, sizeof *s->sample);
        if (!s->window || !s->sample)
            code = error_set(err, -ENOMEM, "out of memory for samples");
    }
    for (size_t i = 0; i < s->nwindows && code == 0; i++)
        s->window[i].begin = windows[i].start;
    for (size_t i = 0, w = 0; i < s->nsamples && code == 0; i++) {
        while (w + 1 < s->nwindows && windows[w].id < samples[i].window)
            w++;
        s->sample[i] = (struct usf_sample){.window = w,
                                           .begin = samples[i].start,
                                           .end = samples[i].distance == PROFILE_DANGLING
                                                      ? USF_DANGLING
                                                      : samples[i].start + samples[i].distance + 1,
                                           .address = samples[i].line * (uint64_t)*line_bytes};
    }
    free(windows);
    free(samples);
    return code;
}

int export_samples(const char *profile, const char *output)
{
    int to_stdout = strcmp(output, "-") == 0;
    struct usf_samples s = {0};
    struct profile *p = NULL;
    struct error err;
    double line_bytes = 64;
    int code = profile_open(profile, &p, &err);
    if (code == 0)
        code = load(p, profile, &line_bytes, &s, &err);
    FILE *file = NULL;
    if (code == 0 && !(file = to_stdout ? stdout : fopen(output, "wxe")))
        code = error_set(&err, -errno, "cannot create %s: %s", output, strerror(errno));
    if (code == 0) {
        code = usf_samples_write(file, (unsigned)line_bytes, &s, &err);
        if ((to_stdout ? fflush(file) : fclose(file)) != 0 && code == 0)
            code = error_set(&err, -errno, "cannot write %s: %s", output, strerror(errno));
        if (code != 0 && !to_stdout)
            unlink(output);
    }
    if (code == 0)
        fprintf(stderr, "cachegram: %zu samples in %zu windows: %s\n", s.nsamples, s.nwindows,
                to_stdout ? "stdout" : output);
    usf_samples_clear(&s);
    profile_close(p, 0, NULL);
    return code == 0 ? 0 : cli_fail(&err);
}
