/* SPDX-License-Identifier: Apache-2.0 */
/* corun_bursts.h - all pairs of windows from profiles of bursts, against simulation. */
#ifndef CACHEGRAM_CORUN_BURSTS_H
#define CACHEGRAM_CORUN_BURSTS_H

#include "corun_window.h"

/*
 * Prints tables. folder/NAME.db is the profile of the program that a window is of; at most CORUN_BURSTS
 * windows. Simulations are kept in the file CORUN_BURSTS_KEPT of the current folder; remove it with the
 * traces.
 */
#define CORUN_BURSTS_KEPT "simulated-pairs"
#define CORUN_BURSTS 16u
void corun_bursts(struct window *const *windows, uint32_t n, const char *folder);

#endif
