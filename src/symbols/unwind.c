/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* DWARF's numbers of registers. */
enum { RBP = 6, RSP = 7, RETURN_ADDRESS = 16 };

struct symbols_unwind {
    Elf *elf;
    Dwarf_CFI *cfi;
};

struct symbols_unwind *symbols_unwind_open(const char *path)
{
    struct symbols_unwind *u = path[0] == '/' ? calloc(1, sizeof *u) : NULL;
    if (u == NULL)
        return NULL;
    elf_version(EV_CURRENT);
    /* The tables are read, and the file is closed: a recorder opens all files of code of the run, which may
     * be thousands (of a script that compiles programs and executes them), and any of them may be truncated.
     */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    u->elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    u->cfi = u->elf != NULL ? dwarf_getcfi_elf(u->elf) : NULL;
    if (u->elf != NULL)
        elf_cntl(u->elf, ELF_C_FDDONE);
    if (fd >= 0)
        close(fd);
    if (u->cfi != NULL)
        return u;
    symbols_unwind_close(u);
    return NULL;
}

void symbols_unwind_close(struct symbols_unwind *u)
{
    if (u == NULL)
        return;
    dwarf_cfi_end(u->cfi);
    elf_end(u->elf);
    free(u);
}

static int find(Dwarf_Frame *frame, struct symbols_rule *rule)
{
    Dwarf_Op *ops, memory[3];
    size_t n;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0)
        return -1;
    if (n == 2 && ops[0].atom == DW_OP_breg6 && ops[1].atom == DW_OP_deref)
        *rule = (struct symbols_rule){.by_rbp = 1, .offset = (int64_t)ops[0].number, .in_memory = 1};
    else if (n == 1 && ops[0].atom == DW_OP_bregx && (ops[0].number == RBP || ops[0].number == RSP))
        *rule = (struct symbols_rule){.by_rbp = ops[0].number == RBP, .offset = (int64_t)ops[0].number2};
    else
        return -1;
    /* Undefined in the outermost function of a thread. */
    if (dwarf_frame_register(frame, RETURN_ADDRESS, memory, &ops, &n) != 0 || (n == 0 && ops == NULL))
        return -1;
    if (dwarf_frame_register(frame, RBP, memory, &ops, &n) != 0)
        return -1;
    if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst) {
        rule->rbp_saved = 1;
        rule->rbp_offset = (int64_t)ops[1].number;
    } else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_breg6) {
        rule->rbp_saved = rule->rbp_by_rbp = 1;
        rule->rbp_offset = (int64_t)ops[1].number;
    } else if (n != 0) {
        return -1;
    }
    return 0;
}

int symbols_unwind_find(struct symbols_unwind *u, uint64_t address, struct symbols_rule *rule)
{
    Dwarf_Frame *frame = NULL;
    if (dwarf_cfi_addrframe(u->cfi, address, &frame) != 0)
        return -1;
    int status = find(frame, rule);
    free(frame);
    return status;
}
