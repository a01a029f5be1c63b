/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code-use.h - how instructions use data: which bytes of lines, with which strides, with conflicts within
 * sets, and which lines threads share. While a process runs this is known by address (shape.h, sharing.h);
 * here it is known by instruction (code.h), of all processes that have ended.
 */
#ifndef CACHEGRAM_CODE_USE_H
#define CACHEGRAM_CODE_USE_H

#include "collect/reduce/code.h"
#include "collect/reduce/shape.h"
#include "collect/reduce/sharing.h"
#include "profile/profile.h"

struct code_use;

/* code: of the run; it must outlive the result. NULL when memory is short. */
struct code_use *code_use_new(struct code *code);
void code_use_free(struct code_use *u); /* NULL is allowed */
/* Adds what is known of a process, whose code is there. 0, or -ENOMEM. */
int code_use_add(struct code_use *u, const struct shape *shape, const struct sharing *sharing,
                 const struct code_process *code);
/* Stores of how many references conflicts and sharing were looked for. 0, or negative with err. */
int code_use_store(const struct code_use *u, struct profile *p, struct error *err);
/* Sets lines, strides, conflicts and sharing. They remain u's, and valid until the next code_use_add. */
void code_use_describe(const struct code_use *u, struct symbols_code *code);

#endif
