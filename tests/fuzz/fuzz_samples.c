/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse samples of USF files: whatever the bytes, samples in order and in their windows, or an error; and
 * what was read, written and read again, is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "trace/usf-samples.h"

#define LINE_BYTES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct error err;

/* A file without a name on disk. */
static int memory_file(char path[64])
{
    int fd = memfd_create("samples", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check(const struct usf_samples *s)
{
    if (s->nsamples > 0 && s->nwindows == 0)
        abort();
    for (size_t i = 0; i < s->nsamples; i++) {
        const struct usf_sample *a = &s->sample[i];
        if (a->window >= s->nwindows || s->window[a->window].begin > a->begin || a->end <= a->begin)
            abort();
        if (i > 0 && (a[-1].begin > a->begin || a[-1].window > a->window))
            abort();
    }
}

static void round_trip(const struct usf_samples *s)
{
    struct usf_samples back;
    struct error damage;
    char path[64];
    int fd = memory_file(path);
    FILE *file = fdopen(dup(fd), "w");
    if (file == NULL || usf_samples_write(file, LINE_BYTES, s, &err) != 0 || fclose(file) != 0)
        abort();
    if (usf_samples_read(path, LINE_BYTES, &back, &damage, &err) != 1 || *damage.text != '\0')
        abort();
    if (back.nsamples != s->nsamples || back.left_out != 0)
        abort();
    for (size_t i = 0; i < s->nsamples; i++) {
        const struct usf_sample *a = &s->sample[i], *b = &back.sample[i];
        if (a->begin != b->begin || s->window[a->window].begin != back.window[b->window].begin)
            abort();
    }
    usf_samples_clear(&back);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct usf_samples samples;
    struct error damage;
    char path[64];
    int fd = memory_file(path);
    if (write(fd, data, n) != (ssize_t)n)
        abort();
    int there = usf_samples_read(path, LINE_BYTES, &samples, &damage, &err);
    if (there > 0) {
        check(&samples);
        if (samples.nsamples > 0)
            round_trip(&samples);
        usf_samples_clear(&samples);
    } else if (there < 0 && *err.text == '\0') {
        abort();
    }
    close(fd);
    return 0;
}
