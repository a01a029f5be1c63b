/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - blocks of code that may change under us (JITs, writable code) look at their own source first.
 *
 * Such a block begins with instructions that compute the CRC of the bytes it was made from, where they lie
 * now, and leave for the dispatcher if it is another one. So no jump, link or table can reach code that is
 * out of date. Flags stay as they are: crc32, lea and jrcxz change none.
 */
#ifndef CACHEGRAM_X86_64_CHECK_H
#define CACHEGRAM_X86_64_CHECK_H

#include "agent/translator/x86_64/emit.h"

/*
 * Emits the check of `bytes` bytes at `pc`, which were `source` when they were decoded. Uses scratch, and
 * rcx, whose value it keeps in T_SCRATCH until it is done: a fault before the check's end finds it there.
 * Returns where the block goes on if all is well in *ok (the code behind the check must begin there, see
 * emit_check_end); what is emitted next runs when it is not, with rcx restored.
 */
void emit_check(struct emitter *e, int scratch, uint64_t pc, const uint8_t *source, unsigned bytes,
                uint8_t **ok);
void emit_check_end(struct emitter *e, uint8_t *ok);

#endif
