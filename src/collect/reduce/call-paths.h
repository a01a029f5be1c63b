/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-paths.h - by which calls code was reached when it touched lines at large distances.
 *
 * When a burst begins, the agent copies the top of the thread's stack, from which the callers are found
 * (objects/callers.h). From then on the calls and returns in the records change the path.
 *
 * Paths form a tree. A node is a call in the function that the caller's node has called; node 0 is the root,
 * of which nothing is known: what called the outermost function that was found.
 */
#ifndef CACHEGRAM_CALL_PATHS_H
#define CACHEGRAM_CALL_PATHS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/objects/frames.h"
#include "collect/objects/table.h"
#include "collect/records/decode.h"
#include "collect/reduce/code.h"
#include "symbols/code.h"
#include "wire/wire.h"

/* --- the paths of a run --- */

struct call_tree;

/* code: calls become its sites. It must live longer. NULL when memory is short (err says so). */
struct call_tree *call_tree_new(struct code *code, struct error *err);
void call_tree_free(struct call_tree *t); /* NULL is allowed */
/* All nodes, from the root on, and the counted touches by site and node; valid until the next touch. */
void call_tree_describe(const struct call_tree *t, struct symbols_code *code);

/* --- the stacks of a process --- */

struct call_paths;

/* modules, nmodules: as the agent reports them, in shared memory. decoder: of the process. All must live
 * longer. NULL when memory is short. */
struct call_paths *call_paths_new(struct call_tree *tree, struct object_table *files,
                                  const struct decoder *decoder, const struct wire_module *modules,
                                  const uint32_t *nmodules, uint32_t pid);
void call_paths_free(struct call_paths *p); /* NULL is allowed */
/* A buffer follows. stack: what the agent copied when its burst began; it is read if desc says so. 0, or
 * -ENOMEM. */
int call_paths_buffer(struct call_paths *p, const struct wire_desc *desc, const struct wire_stack *stack);
/*
 * A batch of the decoder follows, with these calls and returns. Then call_paths_touch counts touches of the
 * batch, number `at` in it by a site, in the order of `at`; what: site-counts.h; process: its id. In the end
 * call_paths_batch_over.
 */
void call_paths_batch(struct call_paths *p, const struct decode_turn *turns, size_t n);
void call_paths_touch(struct call_paths *p, size_t at, uint64_t process, uint32_t site, uint32_t what,
                      uint64_t touches);
void call_paths_batch_over(struct call_paths *p);

/* Notes the large frames of the current thread's stack as it is before the batch. */
void call_paths_note_frames(struct call_paths *p, struct frames *frames);
/* Notes the frame that has an address of the stack, at touch number `at` by a site; in the order of `at`, as
 * call_paths_touch. */
void call_paths_note_frame(struct call_paths *p, struct frames *frames, size_t at, uint32_t site,
                           uint64_t address);

#endif
