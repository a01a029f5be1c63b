/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates, records, modules and copies of stacks as a target may have overwritten them: whatever the bytes,
 * the decoder's repeats, calls and returns are in order, each path ends at the root, and a variable on a
 * stack begins at or below the address that it has.
 *
 * The input: a struct head, then templates and records share the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collect/reduce/call-paths.h"

#define MODULES 3u
#define BLOCKS 8u
#define BUFFERS 3u
#define STACK_WORDS 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct head {
    struct {
        uint64_t start, end, file_offset;
    } module[MODULES];
    uint32_t nmodules;
    uint32_t offsets[BLOCKS];
    uint16_t template_words;
    struct {
        uint64_t pc, sp, rbp, stack_words, words[STACK_WORDS];
        uint32_t tid, burst, last_insns, full;
    } buffer[BUFFERS];
};

static const char *const names[MODULES] = {"/proc/self/exe", "/nowhere", WIRE_JIT_MODULE};
static struct error err;

struct sink {
    struct decoder *decoder;
    struct call_paths *paths;
    struct frames *frames;
};

static void ignore(void *ctx, uint32_t site, uint64_t touches)
{
    (void)ctx, (void)site, (void)touches;
}

static int take(void *ctx, const uint64_t *lines, size_t n)
{
    const struct sink *s = ctx;
    size_t nturns, nrepeats;
    const struct decode_turn *turns = decoder_turns(s->decoder, &nturns);
    const struct stackdist_repeat *r = decoder_repeats(s->decoder, &nrepeats);
    for (size_t i = 0; i < nrepeats; i++)
        if (r[i].at > n || r[i].lines < 1 || r[i].lines > 2 || r[i].at < r[i].lines ||
            (i > 0 && r[i].at <= r[i - 1].at) ||
            (r[i].lines == 2 && lines[r[i].at - 1] == lines[r[i].at - 2]))
            abort();
    for (size_t i = 0; i < nturns; i++)
        if (turns[i].at > n || (i > 0 && turns[i].at < turns[i - 1].at))
            abort();
    call_paths_batch(s->paths, turns, nturns);
    call_paths_note_frames(s->paths, s->frames);
    for (size_t at = 0; at < n; at += 3) {
        uint64_t address = lines[at] << 6, begin;
        call_paths_note_frame(s->paths, s->frames, at, (uint32_t)at, address);
        if (frames_find(s->frames, address, &begin) != 0 && begin != UINT64_MAX && begin > address)
            abort();
        call_paths_touch(s->paths, at, 1, (uint32_t)at, (uint32_t)at % 30, 1 + at % 9);
    }
    call_paths_batch_over(s->paths);
    return 0;
}

static void check(const struct call_tree *tree, const struct code *of)
{
    struct symbols_code code = code_found(of);
    call_tree_describe(tree, &code);
    for (size_t i = 1; i < code.npaths; i++)
        if (code.paths[i].caller >= i ||
            (code.paths[i].site != SYMBOLS_NO_SITE && code.paths[i].site >= code.nsites))
            abort();
    for (size_t i = 0; i < code.ncalls; i++)
        if (code.calls[i].path >= code.npaths)
            abort();
}

static void decode(const struct head *head, const uint64_t *words, size_t nwords)
{
    static uint32_t offsets[WIRE_MAX_BLOCKS], executions[WIRE_MAX_BLOCKS], executed[WIRE_MAX_BLOCKS + 1];
    static struct wire_module modules[WIRE_MAX_MODULES];
    static struct wire_stack stack;
    struct decode_sites sites = {.executions = executions, .executed = executed, .more = ignore};
    size_t templates = head->template_words < nwords ? head->template_words : nwords;
    const struct decode_source source = {words, 8 * templates, offsets};
    struct decode_counts counts = {0};
    memset(executions, 0, sizeof executions);
    memcpy(offsets + 1, head->offsets, sizeof head->offsets);
    for (uint32_t i = 0; i < MODULES; i++) {
        modules[i] = (struct wire_module){.start = head->module[i].start,
                                          .end = head->module[i].end,
                                          .file_offset = head->module[i].file_offset};
        snprintf(modules[i].path, sizeof modules[i].path, "%s", names[i]);
    }
    uint32_t nmodules = head->nmodules % 2 ? head->nmodules : head->nmodules % (MODULES + 1);
    struct code *code = code_new(&err);
    static struct object_table *files; /* of all inputs: debug information is read once */
    if (files == NULL && (files = object_table_new(&err)) == NULL)
        abort();
    struct call_tree *tree = call_tree_new(code, &err);
    struct sink s = {.decoder = decoder_new(64, &source, &err), .frames = frames_new(files)};
    s.paths = call_paths_new(tree, files, s.decoder, modules, &nmodules, 1);
    if (s.decoder == NULL || s.paths == NULL || s.frames == NULL || decoder_note_turns(s.decoder) < 0)
        abort();
    decoder_note_sites(s.decoder, &sites);
    for (size_t i = 0; i < BUFFERS; i++) {
        if (decoder_strings(s.decoder, head->buffer[i].full % 4 / 2   ? DECODE_STRINGS_REPEAT
                                       : head->buffer[i].full % 8 / 4 ? DECODE_STRINGS_LINES
                                                                      : DECODE_STRINGS_ALL) < 0)
            abort();
        const struct wire_desc desc = {.tid = head->buffer[i].tid % 3,
                                       .burst = head->buffer[i].burst % 3,
                                       .pc = head->buffer[i].pc,
                                       .full = head->buffer[i].full % 2,
                                       .stack_words = head->buffer[i].stack_words,
                                       .last_insns = head->buffer[i].last_insns};
        stack.sp = head->buffer[i].sp;
        stack.rbp = head->buffer[i].rbp;
        memcpy(stack.words, head->buffer[i].words, sizeof head->buffer[i].words);
        if (call_paths_buffer(s.paths, &desc, &stack) < 0)
            abort();
        decode_buffer(s.decoder, &desc, words + templates, nwords - templates, take, &s, &counts);
    }
    check(tree, code);
    decoder_free(s.decoder);
    call_paths_free(s.paths);
    frames_free(s.frames);
    call_tree_free(tree);
    code_free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct head head = {0};
    memcpy(&head, data, n < sizeof head ? n : sizeof head);
    size_t nwords = n > sizeof head ? (n - sizeof head) / 8 : 0;
    uint64_t *words = malloc(8 * nwords + 8);
    if (words == NULL)
        abort();
    if (nwords > 0)
        memcpy(words, data + sizeof head, 8 * nwords);
    decode(&head, words, nwords);
    free(words);
    return 0;
}
