/* SPDX-License-Identifier: Apache-2.0 */
/* main.h - the constructor and the signal dispatcher, which wire the rest. */
#ifndef CACHEGRAM_AGENT_MAIN_H
#define CACHEGRAM_AGENT_MAIN_H

#pragma GCC visibility push(hidden)

/* From now on signals come to the dispatcher (signals/frame.h). */
void signals_dispatch_init(void);

#pragma GCC visibility pop
#endif
