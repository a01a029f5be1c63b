/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - blocks whose source may change (JITs, writable code) verify it first.
 *
 * Such a block begins with instructions that compute the CRC of the bytes that it was made from, at their
 * place, and leave for the dispatcher if it differs. So no jump, link or table can reach outdated code.
 * Flags do not change: crc32, lea and jrcxz leave them alone.
 */
#ifndef CACHEGRAM_X86_64_CHECK_H
#define CACHEGRAM_X86_64_CHECK_H

#include "agent/translator/x86_64/emit.h"

/*
 * Emits the check of `bytes` bytes at `pc`, which were `source` when they were decoded. Uses scratch, and
 * rcx, whose value is in T_SCRATCH meanwhile: a fault before the end of the check finds it there. *ok: the
 * jump to where the block continues if the check succeeds (emit_check_end sets its target). What is emitted
 * next runs if it fails, with rcx restored.
 */
void emit_check(struct emitter *e, int scratch, uint64_t pc, const uint8_t *source, unsigned bytes,
                uint8_t **ok);
void emit_check_end(struct emitter *e, uint8_t *ok);

#endif
