/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-map.h - names for code that a JIT compiler made: /tmp/perf-PID.map, as `perf report` reads it. Each
 * line is "ADDRESS SIZE NAME", both numbers in hexadecimal. An entry is as old as the file was long: its time
 * is when the recorder last saw the file without it. Of several entries of one time the last one counts. Or a
 * jitdump (jit-dump.h), which such a compiler maps as code, so that it is found.
 */
#ifndef CACHEGRAM_SYMBOLS_JIT_MAP_H
#define CACHEGRAM_SYMBOLS_JIT_MAP_H

#include <stddef.h>
#include <stdint.h>
#include "symbols/code.h"
#include "symbols/jit-entries.h"

#define SYMBOLS_JIT_MAP_PATH 32 /* bytes, with the final 0 */

/* The path of a process' map, which need not exist. */
void symbols_jit_map_path(uint32_t pid, char path[SYMBOLS_JIT_MAP_PATH]);
/* The path has the form of a map's. */
int symbols_jit_map_is(const char *path);
/* The path has the form of a jitdump's, .../jit-PID.dump; *pid: of which process. */
int symbols_jit_dump_is(const char *path, uint32_t *pid);
/* Of a map, or of a jitdump. growth[n]: of all maps, in the order of time. NULL: there is no such file, it is
 * not a regular one of this user's or of root's, or memory is short. Lines of another form, and records of
 * other kinds, are ignored; what is behind a damaged record is, too. */
struct jit_entries *symbols_jit_map_open(const char *path, const struct symbols_growth *growth, size_t n);

#endif
