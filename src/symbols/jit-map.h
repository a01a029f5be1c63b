/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-map.h - names for code that a JIT compiler made: /tmp/perf-PID.map, as `perf report` reads it. Each
 * line is "ADDRESS SIZE NAME", both numbers in hexadecimal. Of several entries at an address the last one
 * counts. Or a jitdump, which such a compiler writes for `perf inject --jit` and maps as code, so that it is
 * found: records of functions made, and moved (tools/perf/Documentation/jitdump-specification.txt in Linux).
 */
#ifndef CACHEGRAM_SYMBOLS_JIT_MAP_H
#define CACHEGRAM_SYMBOLS_JIT_MAP_H

#include <stdint.h>

#define SYMBOLS_JIT_MAP_PATH 32 /* bytes, with the final 0 */

struct jit_map;

/* The path of a process' map, which need not exist. */
void symbols_jit_map_path(uint32_t pid, char path[SYMBOLS_JIT_MAP_PATH]);
/* The path has the form of a map's. */
int symbols_jit_map_is(const char *path);
/* The path has the form of a jitdump's, .../jit-PID.dump; *pid: of which process. */
int symbols_jit_dump_is(const char *path, uint32_t *pid);
/* Of a map, or of a jitdump. NULL: there is no such file, it is not a regular one of this user's or of
 * root's, or memory is short. Lines of another form, and records of other kinds, are ignored; what is behind
 * a damaged record is, too. */
struct jit_map *symbols_jit_map_open(const char *path);
void symbols_jit_map_close(struct jit_map *map); /* NULL is allowed */
/* The name of the code at that address, owned by the map; NULL: none. */
const char *symbols_jit_map_find(const struct jit_map *map, uint64_t address);

#endif
