/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/disassemble.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct disassembler {
    uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

static int cannot_read(const char *path, int code, struct error *err)
{
    return error_set(err, code, "cannot read '%s': %s", path, strerror(-code));
}

static int map_file(struct disassembler *d, const char *path, struct error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = 0;
    if (fd < 0)
        return cannot_read(path, -errno, err);
    if (fstat(fd, &st) != 0)
        code = cannot_read(path, -errno, err);
    else if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof d->header)
        code = error_set(err, -EINVAL, "'%s' is not a program or library", path);
    if (code == 0) {
        d->size = (size_t)st.st_size;
        void *bytes = mmap(NULL, d->size, PROT_READ, MAP_PRIVATE, fd, 0);
        d->bytes = bytes == MAP_FAILED ? NULL : bytes;
        if (!d->bytes)
            code = cannot_read(path, -errno, err);
    }
    close(fd);
    return code;
}

static int start(struct disassembler *d)
{
    ZydisFormatter *f = &d->formatter;
    return ZYAN_SUCCESS(ZydisDecoderInit(&d->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisFormatterInit(f, ZYDIS_FORMATTER_STYLE_INTEL)) &&
           ZYAN_SUCCESS(ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE)) &&
           ZYAN_SUCCESS(ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                                                  (ZyanUPointer)ZYDIS_PADDING_DISABLED));
}

struct disassembler *disassembler_open(const char *path, struct error *err)
{
    struct disassembler *d = calloc(1, sizeof *d);
    if (!d) {
        error_set(err, -ENOMEM, "out of memory for the instructions of '%s'", path);
        return NULL;
    }
    int code = map_file(d, path, err);
    if (code == 0) {
        memcpy(&d->header, d->bytes, sizeof d->header);
        if (memcmp(d->header.e_ident, ELFMAG, SELFMAG) != 0 || d->header.e_ident[EI_CLASS] != ELFCLASS64 ||
            d->header.e_machine != EM_X86_64)
            code = error_set(err, -EINVAL, "'%s' is not an x86-64 program or library", path);
        else if (!start(d))
            code = error_set(err, -EINVAL, "the disassembler cannot be started");
    }
    if (code == 0)
        return d;
    disassembler_close(d);
    return NULL;
}

void disassembler_close(struct disassembler *d)
{
    if (!d)
        return;
    if (d->bytes)
        munmap(d->bytes, d->size);
    free(d);
}

uint64_t disassembler_address(const struct disassembler *d, uint64_t offset)
{
    for (size_t i = 0; i < d->header.e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = d->header.e_phoff + i * sizeof segment;
        if (at < d->header.e_phoff || at > d->size - sizeof segment)
            break;
        memcpy(&segment, d->bytes + at, sizeof segment);
        if (segment.p_type == PT_LOAD && offset >= segment.p_offset &&
            offset - segment.p_offset < segment.p_filesz)
            return offset - segment.p_offset + segment.p_vaddr;
    }
    return offset;
}

unsigned disassembler_insn(const struct disassembler *d, uint64_t offset, char *text, size_t size)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (offset >= d->size ||
        !ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&d->decoder, d->bytes + offset, d->size - offset, &insn, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&d->formatter, &insn, operands,
                                                      insn.operand_count_visible, text, size,
                                                      disassembler_address(d, offset), NULL)))
        return 0;
    return insn.length;
}

/* DWARF's number of a register of 64 bits; -1: it is none of those that hold addresses. */
static int number_of(ZydisRegister name)
{
    static const struct {
        ZydisRegister name;
        int number;
    } registers[] = {{ZYDIS_REGISTER_RAX, 0},  {ZYDIS_REGISTER_RDX, 1},  {ZYDIS_REGISTER_RCX, 2},
                     {ZYDIS_REGISTER_RBX, 3},  {ZYDIS_REGISTER_RSI, 4},  {ZYDIS_REGISTER_RDI, 5},
                     {ZYDIS_REGISTER_RBP, 6},  {ZYDIS_REGISTER_R8, 8},   {ZYDIS_REGISTER_R9, 9},
                     {ZYDIS_REGISTER_R10, 10}, {ZYDIS_REGISTER_R11, 11}, {ZYDIS_REGISTER_R12, 12},
                     {ZYDIS_REGISTER_R13, 13}, {ZYDIS_REGISTER_R14, 14}, {ZYDIS_REGISTER_R15, 15}};
    for (size_t i = 0; i < sizeof registers / sizeof registers[0]; i++)
        if (registers[i].name == name)
            return registers[i].number;
    return -1;
}

#define RSP 7

/* The registers of a memory operand. 0, or -1: it has none. */
static int address_of(const ZydisDecodedOperand *memory, struct disassembler_address *address)
{
    int base = memory->mem.base == ZYDIS_REGISTER_RSP ? RSP : number_of(memory->mem.base),
        index = memory->mem.scale == 1 ? number_of(memory->mem.index) : -1;
    *address = (struct disassembler_address){
        .is_indexed = memory->mem.index != ZYDIS_REGISTER_NONE,
        .displacement = memory->mem.disp.has_displacement ? memory->mem.disp.value : 0};
    if (base >= 0)
        address->registers[address->n++] = (unsigned)base;
    if (index >= 0)
        address->registers[address->n++] = (unsigned)index;
    return address->n > 0 ? 0 : -1;
}

int disassembler_memory(const struct disassembler *d, uint64_t offset, struct disassembler_address *address)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const ZydisDecodedOperand *memory = NULL;
    if (offset >= d->size || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, d->bytes + offset,
                                                                  d->size - offset, &insn, operands)))
        return -1;
    for (unsigned i = 0; i < insn.operand_count; i++) {
        if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY || operands[i].mem.type != ZYDIS_MEMOP_TYPE_MEM)
            continue;
        if (memory != NULL)
            return -1;
        memory = &operands[i];
    }
    return memory != NULL ? address_of(memory, address) : -1;
}

unsigned disassembler_load(const struct disassembler *d, uint64_t offset, struct disassembler_address *from,
                           int *number)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *number = -1;
    if (offset >= d->size || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, d->bytes + offset,
                                                                  d->size - offset, &insn, operands)))
        return 0;
    if (insn.mnemonic == ZYDIS_MNEMONIC_MOV && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY && address_of(&operands[1], from) == 0)
        *number = number_of(operands[0].reg.value);
    return insn.length;
}

int disassembler_is_near_call(const struct disassembler *d, uint64_t offset)
{
    return offset < d->size && d->bytes[offset] == 0xe8;
}

/* Memory to which a mov copies. */
static void find_copy(const struct disassembler *d, uint64_t next, const ZydisDecodedOperand *to,
                      struct disassembler_copy *copy)
{
    if (to->mem.base == ZYDIS_REGISTER_RIP) {
        copy->to = DISASSEMBLER_STATIC;
        copy->static_address = disassembler_address(d, next) + (uint64_t)to->mem.disp.value;
    } else if (address_of(to, &copy->address) == 0) {
        copy->to = DISASSEMBLER_MEMORY;
    }
}

/* Bits of registers that a function keeps: rbx, rbp, r12 to r15. */
#define KEPT_BY_FUNCTIONS 0xf048u

unsigned disassembler_follow(const struct disassembler *d, uint64_t offset, uint32_t *held,
                             struct disassembler_copy *copy)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    uint32_t before = *held;
    *copy = (struct disassembler_copy){.to = DISASSEMBLER_NOWHERE};
    if (offset >= d->size || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, d->bytes + offset,
                                                                  d->size - offset, &insn, operands)))
        return 0;
    if (insn.meta.category == ZYDIS_CATEGORY_COND_BR)
        return insn.mnemonic == ZYDIS_MNEMONIC_JZ ? insn.length : 0;
    if (insn.meta.category == ZYDIS_CATEGORY_CALL) {
        *held &= KEPT_BY_FUNCTIONS;
        return *held != 0 ? insn.length : 0;
    }
    if (insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || insn.meta.category == ZYDIS_CATEGORY_SYSCALL ||
        insn.meta.category == ZYDIS_CATEGORY_INTERRUPT)
        return 0;
    for (unsigned i = 0; i < insn.operand_count; i++) {
        int number = operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                             (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0
                         ? number_of(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                                      operands[i].reg.value))
                         : -1;
        if (number >= 0)
            *held &= ~(1u << number);
    }
    int from = insn.mnemonic == ZYDIS_MNEMONIC_MOV && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER
                   ? number_of(operands[1].reg.value)
                   : -1;
    if (from >= 0 && (before & 1u << from) != 0) {
        int to = operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operands[0].reg.value) : -1;
        if (to >= 0)
            *held |= 1u << to;
        else if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
            find_copy(d, offset + insn.length, &operands[0], copy);
    }
    return *held != 0 ? insn.length : 0;
}

static int writes(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands, unsigned number)
{
    for (unsigned i = 0; i < insn->operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            number_of(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[i].reg.value)) ==
                (int)number)
            return 1;
    return insn->meta.category == ZYDIS_CATEGORY_CALL && (KEPT_BY_FUNCTIONS & 1u << number) == 0;
}

/* What an instruction sets a register to that it writes. 0, or -1: not known. */
static int origin_of(const struct disassembler *d, uint64_t offset, const ZydisDecodedInstruction *insn,
                     const ZydisDecodedOperand *operands, struct disassembler_origin *origin)
{
    const ZydisDecodedOperand *to = &operands[0], *from = &operands[1];
    if (insn->operand_count < 2 || to->type != ZYDIS_OPERAND_TYPE_REGISTER || number_of(to->reg.value) < 0)
        return -1;
    int source = from->type != ZYDIS_OPERAND_TYPE_REGISTER ? -1
                 : from->reg.value == ZYDIS_REGISTER_RSP   ? RSP
                                                           : number_of(from->reg.value);
    int is_sum = insn->mnemonic == ZYDIS_MNEMONIC_ADD;
    *origin = (struct disassembler_origin){.offset = offset, .how = DISASSEMBLER_ADDED};
    if (source >= 0 && (insn->mnemonic == ZYDIS_MNEMONIC_MOV || is_sum)) {
        origin->address =
            (struct disassembler_address){.registers = {(unsigned)source, (unsigned)number_of(to->reg.value)},
                                          .n = 1,
                                          .is_indexed = is_sum};
        origin->address.n += (unsigned)is_sum;
        return 0;
    }
    if (from->type != ZYDIS_OPERAND_TYPE_MEMORY ||
        (insn->mnemonic != ZYDIS_MNEMONIC_MOV && insn->mnemonic != ZYDIS_MNEMONIC_LEA && !is_sum))
        return -1;
    origin->is_sum = is_sum;
    if (insn->mnemonic != ZYDIS_MNEMONIC_LEA)
        origin->how = DISASSEMBLER_LOADED;
    if (from->mem.base == ZYDIS_REGISTER_RIP) {
        origin->how =
            origin->how == DISASSEMBLER_LOADED ? DISASSEMBLER_LOADED_STATIC : DISASSEMBLER_STATIC_VALUE;
        origin->static_address =
            disassembler_address(d, offset + insn->length) + (uint64_t)from->mem.disp.value;
        return 0;
    }
    return address_of(from, &origin->address);
}

/* The constant that an instruction adds to a register of 64 bits; 0: it does something else. */
static int64_t step_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
                       unsigned number)
{
    if (insn->operand_count < 2 || operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        number_of(operands[0].reg.value) != (int)number)
        return 0;
    if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return insn->mnemonic == ZYDIS_MNEMONIC_ADD   ? operands[1].imm.value.s
               : insn->mnemonic == ZYDIS_MNEMONIC_SUB ? -operands[1].imm.value.s
                                                      : 0;
    return insn->mnemonic == ZYDIS_MNEMONIC_LEA && number_of(operands[1].mem.base) == (int)number &&
                   operands[1].mem.index == ZYDIS_REGISTER_NONE
               ? operands[1].mem.disp.value
               : 0;
}

/* Whether a function at [low, high) has a branch to one of the instructions after one, up to another. */
static int is_entered(const struct disassembler *d, uint64_t low, uint64_t high, uint64_t after, uint64_t to)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    for (uint64_t at = low; at < high; at += insn.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, d->bytes + at, d->size - at, &insn, operands)))
            return 1;
        if (insn.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE || insn.meta.category == ZYDIS_CATEGORY_CALL ||
            operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            continue;
        uint64_t target = at + insn.length + (uint64_t)operands[0].imm.value.s;
        if (target > after && target <= to)
            return 1;
    }
    return 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int disassembler_origin(const struct disassembler *d, uint64_t low, uint64_t high, uint64_t offset,
                        unsigned number, struct disassembler_origin *origin)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct disassembler_origin added = {0}; /* a constant, by the last instruction that writes the register */
    int found = -1, straight = 0, is_added = 0;
    unsigned times = 0;
    uint64_t step = 0;
    int64_t by;
    if (high > d->size)
        return -1;
    for (uint64_t at = low; at < high; at += insn.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, d->bytes + at, d->size - at, &insn, operands)))
            return -1;
        if (at < offset && insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            straight = is_added = 0;
        if (!writes(&insn, operands, number) || insn.mnemonic == ZYDIS_MNEMONIC_POP)
            continue;
        if (at < offset)
            is_added = 0;
        if ((by = step_of(&insn, operands, number)) != 0) {
            step = common_divisor(step, (uint64_t)(by < 0 ? -by : by));
            if (at < offset) {
                is_added = 1;
                added = (struct disassembler_origin){
                    .offset = at,
                    .how = DISASSEMBLER_ADDED,
                    .address = {.registers = {number}, .n = 1, .displacement = by}};
            }
            continue;
        }
        times++;
        if (at < offset) {
            found = origin_of(d, at, &insn, operands, origin);
            straight = 1;
        }
    }
    if (is_added && !is_entered(d, low, high, added.offset, offset)) {
        *origin = added;
        return 0;
    }
    if (times == 0) {
        *origin = (struct disassembler_origin){.offset = low, .how = DISASSEMBLER_ENTRY};
        found = 0;
    }
    if (straight && step != 0 && !is_entered(d, low, high, origin->offset, offset))
        step = 0;
    origin->step = step;
    return straight || times <= 1 ? found : -1;
}
