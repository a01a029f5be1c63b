/* SPDX-License-Identifier: Apache-2.0 */
/* code-place.h - places in a program's code as users specify them, and their addresses in a process. */
#ifndef CACHEGRAM_CODE_PLACE_H
#define CACHEGRAM_CODE_PLACE_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

/*
 * FUNCTION, of the program, or else of one of its loaded libraries, as the linker names it; FILE:FUNCTION, of
 * that file, where FILE is a path or the last part of one (libz.so.1); FILE:0xOFFSET, the instruction at that
 * offset in the file; 0xADDRESS in the process.
 */

/* Is it one of these? 0; -EINVAL with err filled. */
int code_place_check(const char *text, struct error *err);
/*
 * Its address in a process that has executed its program. own_only: search functions in the program's file
 * only, as nothing else is loaded yet. -ENOENT if there is no such place, -EINVAL for a function that is
 * chosen at link time (an ifunc), -ESRCH; each with err filled.
 */
int code_place_find(pid_t pid, const char *text, int own_only, uint64_t *address, struct error *err);
/* The program's first instruction; when it is reached, its libraries are loaded. 0; -ESRCH. */
int code_place_entry(pid_t pid, uint64_t *address, struct error *err);

#endif
