/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/library.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Whether it is in a module of Rust's library. Structures of Rust have no file in debug information. */
static int is_of_rust_library(Dwarf_Die *die)
{
    static const char *const crates[] = {"alloc", "core", "std", "hashbrown"};
    Dwarf_Die *scopes = NULL, unit;
    int n = dwarf_diecu(die, &unit, NULL, NULL) != NULL && dwarf_srclang(&unit) == DW_LANG_Rust
                ? dwarf_getscopes_die(die, &scopes)
                : 0,
        is = 0;
    /* The last one is the unit. */
    const char *crate =
        n > 1 && dwarf_tag(&scopes[n - 2]) == DW_TAG_namespace ? dwarf_diename(&scopes[n - 2]) : NULL;
    for (size_t i = 0; crate != NULL && i < sizeof crates / sizeof *crates; i++)
        is |= strcmp(crate, crates[i]) == 0;
    free(scopes);
    return is;
}

int symbols_library_declares(Dwarf_Die *die)
{
    static const char *const beginnings[] = {"/usr/include/", "/usr/lib/", "/rustc/", "/usr/src/rustc"};
    const char *file = dwarf_decl_file(die);
    for (size_t i = 0; file != NULL && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(file, beginnings[i], strlen(beginnings[i])) == 0)
            return 1;
    return is_of_rust_library(die);
}
