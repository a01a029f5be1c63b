/* SPDX-License-Identifier: Apache-2.0 */
/* bits.h - sets of signals as the kernel has them: bit s - 1 for signal s. */
#ifndef CACHEGRAM_AGENT_SIGNALS_BITS_H
#define CACHEGRAM_AGENT_SIGNALS_BITS_H

#include <signal.h>

#define SIGNAL_BIT(s) (1ull << ((s)-1))
#define ALTSTACK_AUTODISARM (1u << 31) /* SS_AUTODISARM, which older headers do not name */
#define FAULT_SIGNALS                                                                     \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGFPE) | \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))

#endif
