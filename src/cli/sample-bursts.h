/* SPDX-License-Identifier: Apache-2.0 */
/* sample-bursts.h - `cachegram sample --bursts`: the burst method replayed on a trace. */
#ifndef CACHEGRAM_SAMPLE_BURSTS_H
#define CACHEGRAM_SAMPLE_BURSTS_H

/* Whether --bursts is among the arguments: then cmd_sample_bursts handles all of them. */
int sample_wants_bursts(int argc, char **argv);
/* A command: returns the exit status. */
int cmd_sample_bursts(int argc, char **argv);

#endif
