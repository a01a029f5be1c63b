/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moves.h"
#include "collect/records/tee.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tee {
    struct trace_writer *writer;
    int full;
    int failed;
    struct error why;
    struct moves moves;           /* an existing file that was renamed */
    struct trace_segment segment; /* of the buffer in progress */
};

struct tee *tee_new(const char *path, const char *source, int full, struct error *err)
{
    struct trace_create_options options = {.source = source, .sampled = !full, .background = 1};
    struct stat st;
    struct tee *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        error_set(err, -ENOMEM, "out of memory for the trace");
        return NULL;
    }
    t->full = full;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        char old[PATH_MAX + 8];
        snprintf(old, sizeof(old), "%s.old", path);
        int code = moves_rename(&t->moves, path, old);
        if (code < 0) {
            error_set(err, code, "cannot rename %s to %s: %s", path, old, strerror(-code));
            free(t);
            return NULL;
        }
    }
    t->writer = trace_create(path, &options, err);
    if (t->writer == NULL) {
        tee_abandon(t);
        return NULL;
    }
    return t;
}

static int write_batch(void *ctx, const struct trace_batch *batch)
{
    struct tee *t = ctx;
    struct trace_batch whole = *batch;
    t->segment.end = (uint32_t)batch->n;
    whole.segment = &t->segment;
    whole.nsegments = 1;
    int status = trace_write(t->writer, &whole, &t->why);
    t->segment.burst = 0;
    return status;
}

void tee_buffer(struct tee *t, struct references **references, const struct decode_source *source,
                uint32_t pid, const struct wire_desc *desc, const uint64_t *words, uint64_t n)
{
    uint64_t instructions = 0;
    if (t->failed)
        return;
    int64_t thread =
        trace_writer_thread(t->writer, (struct trace_thread){.pid = pid, .tid = desc->tid}, &t->why);
    if (thread < 0 || (*references == NULL && (*references = references_new(source, &t->why)) == NULL)) {
        t->failed = 1;
        return;
    }
    t->segment = (struct trace_segment){.thread = (uint32_t)thread, .burst = !t->full};
    int status = references_decode(*references, desc, words, n, write_batch, t, &instructions);
    if (status == -ENOMEM)
        error_set(&t->why, status, "out of memory for the trace");
    t->failed = status < 0;
    trace_writer_instructions(t->writer, instructions);
}

uint64_t tee_references(const struct tee *t)
{
    return trace_stored_references(t->writer);
}

void tee_flush(struct tee *t)
{
    if (!t->failed && trace_flush(t->writer, &t->why) < 0)
        t->failed = 1;
}

int tee_finish(struct tee *t, struct error *err)
{
    /* An error in writing is reported again by finishing, with the same message. */
    int status = trace_finish(t->writer, NULL, err);
    if (status == 0 && t->failed)
        status = error_set(err, -ENOMEM, "%s", t->why.text);
    moves_keep(&t->moves);
    free(t);
    return status;
}

void tee_abandon(struct tee *t)
{
    if (t == NULL)
        return;
    trace_abandon(t->writer);
    moves_undo(&t->moves);
    free(t);
}

void tee_keep(struct tee *t)
{
    moves_keep(&t->moves);
}
