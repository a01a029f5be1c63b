/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xsave.h - the extended state in a signal frame.
 *
 * It is what XSAVE writes, never compacted: the legacy area of 512 bytes; a header that shows which
 * components are in use (others have no data); then the components, at the offsets that CPUID leaf 0xd
 * reports.
 */
#ifndef CACHEGRAM_X86_64_XSAVE_H
#define CACHEGRAM_X86_64_XSAVE_H

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define XSAVE_SOFTWARE 464 /* the kernel's note: first a magic number if there is extended state */
#define XSAVE_MAGIC 0x46505853u
#define XSAVE_COMPONENTS 472 /* in that note: components that the frame has room for */
#define XSAVE_HEADER 512     /* bit i: component i is in use */
#define XSAVE_XMM 160

/* NULL: there is none. */
static inline uint8_t *xsave_state(const ucontext_t *uc)
{
    uint8_t *state = (uint8_t *)uc->uc_mcontext.fpregs;
    uint32_t magic = 0;
    if (state)
        memcpy(&magic, state + XSAVE_SOFTWARE, sizeof magic);
    return magic == XSAVE_MAGIC ? state : NULL;
}

static inline int xsave_in_use(const uint8_t *state, unsigned component)
{
    uint64_t bits;
    memcpy(&bits, state + XSAVE_HEADER, sizeof bits);
    return bits >> component & 1;
}

#endif
