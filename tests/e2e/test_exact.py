# SPDX-License-Identifier: Apache-2.0
"""Full mode counts what the CPU does: every operand form with known numbers of loads and stores.

Each case is a few instructions of assembly in a loop whose counter lives in a register (r15). The program
runs in full mode with N and with 2N rounds; the difference of the two profiles must be exactly N times the
case's loads and stores, so that start-up and end cancel. Before each loop rbp points at 64 KB of data (64 KB
aligned, in the middle of 192 KB), r12 = rbp, r14 = rsp; rsi and rdi and rcx and rax are free.
"""
import subprocess

import pytest

from conftest import FULL, run, totals

DEBUG_INFO = False

ROUNDS = 3000

# name: (loads, stores, instructions of one round[, set-up before the loop[, CPU flags needed]])
CASES = {
    # No reference at all.
    "lea": (0, 0, "lea 64(%rbp,%rax,4), %rax"),
    "nop_mem": (0, 0, "nopw 0(%rbp); nopl 64(%rbp,%rax,1)"),
    "prefetch": (0, 0, "prefetcht0 64(%rbp); prefetchnta (%rbp); prefetchw 128(%rbp)"),
    "endbr_pause_fence": (0, 0, "endbr64; pause; mfence; lfence; sfence"),
    "clflush": (0, 0, "clflush 256(%rbp)"),
    # Plain and read-modify-write.
    "mov_load": (1, 0, "mov 8(%rbp), %rax"),
    "mov_store": (0, 1, "mov %rax, 8(%rbp)"),
    "mov_byte": (1, 1, "movb 3(%rbp), %al; movb %al, 5(%rbp)"),
    "mov_imm": (0, 3, "movq $7, 8(%rbp); movb $1, (%rbp); movw $2, 16(%rbp)"),
    "mov_extend": (4, 0, "movzbl (%rbp), %eax; movswq 2(%rbp), %rax; movslq 4(%rbp), %rax; movsbl (%rbp), %eax"),
    "movbe": (1, 1, "movbe (%rbp), %eax; movbe %eax, 8(%rbp)", "", "movbe"),
    "movnti": (0, 1, "movnti %rax, 64(%rbp)"),
    "rip_relative": (1, 1, "mov own_data(%rip), %rax; mov %eax, own_data+8(%rip)"),
    "absolute_index": (1, 0, "mov 8(%rbp,%rbx,8), %rax", "mov $3, %ebx"),
    "no_base": (1, 0, "mov 64(,%rbx,4), %rax", "mov %rbp, %rbx; shr $2, %rbx"),
    "rsp_relative": (1, 1, "mov -64(%rsp), %rax; mov %rax, -72(%rsp)"),
    "r12_r13_base": (2, 0, "mov (%r12), %rax; mov (%r13), %rbx", "mov %rbp, %r13"),
    "add_rmw": (1, 1, "addq $3, 8(%rbp)"),
    "add_reg_rmw": (1, 1, "add %rax, 8(%rbp)"),
    "add_load": (1, 0, "add 8(%rbp), %rax"),
    "cmp_test": (3, 0, "cmpq $3, 8(%rbp); test %eax, (%rbp); cmp (%rbp), %rax"),
    "inc_neg_not": (3, 3, "incl (%rbp); negq 8(%rbp); notb 17(%rbp)"),
    "shift": (4, 4, "shlq $3, (%rbp); shrl %cl, 8(%rbp); sarw $1, 16(%rbp); rolb $1, 20(%rbp)", "mov $3, %ecx"),
    "shld": (1, 1, "shldq $5, %rax, (%rbp)"),
    "adc_sbb": (2, 2, "adcq $1, (%rbp); sbb %rax, 8(%rbp)"),
    "mul_div": (3, 0, "mov $100, %eax; xor %edx, %edx; divl divisor(%rip); mull divisor(%rip);"
                " imul divisor(%rip), %eax"),
    "cmov_mem": (2, 0, "cmp %rax, %rax; cmovne (%rbp), %rbx; cmove 8(%rbp), %rbx"),
    "setcc": (0, 2, "sete (%rbp); setne 1(%rbp)"),
    "bt": (1, 0, "btq $3, (%rbp)"),
    "bt_far": (1, 0, "bt %rax, (%rbp)", "mov $-1000, %rax"),
    "bts_btr_btc": (3, 3, "btsq $3, (%rbp); btrl $7, 8(%rbp); btcw $2, 16(%rbp)"),
    "bts_far": (1, 1, "bts %rax, (%rbp)", "mov $4096, %eax"),
    "xchg": (1, 1, "xchg %rax, (%rbp)"),
    "xadd": (2, 2, "xadd %rax, (%rbp); lock xadd %eax, 8(%rbp)"),
    "lock_rmw": (3, 3, "lock addq $1, (%rbp); lock incl 8(%rbp); lock btsq $3, 16(%rbp)"),
    "cmpxchg": (1, 1, "lock cmpxchg %rdx, (%rbp)",
                "mov (%rbp), %rax; mov %rax, %rdx"),
    "cmpxchg_fails": (1, 1, "mov $1, %eax; cmpxchg %rdx, 64(%rbp)"),
    "cmpxchg16b": (1, 1, "lock cmpxchg16b (%rbp)", "", "cx16"),
    "xlat": (1, 0, "xor %eax, %eax; xlatb", "mov %rbp, %rbx"),
    "popcnt_lzcnt_crc": (4, 0, "popcnt (%rbp), %rax; tzcnt (%rbp), %rax; bsf 8(%rbp), %rax; crc32q (%rbp), %rax"),
    "bmi": (3, 0, "andn (%rbp), %rax, %rbx; bextr %rax, (%rbp), %rbx; pextq (%rbp), %rax, %rbx", "", "bmi2"),
    "mulx_shlx": (2, 0, "mulx (%rbp), %rax, %rbx; shlx %rax, (%rbp), %rbx", "", "bmi2"),
    "fs": (1, 0, "mov %fs:0, %rax"),
    "fs_store": (1, 1, "mov %fs:0x28, %rax; mov %rax, %fs:0x28"),
    "fs_base": (1, 0, "mov %fs:(%rbx), %rax", "xor %ebx, %ebx"),
    "addr32": (1, 0, "mov (%ebp), %eax", "lea low_data, %ebp"),
    # The stack.
    "push_pop": (1, 1, "push %rax; pop %rbx"),
    "push_imm": (1, 1, "push $7; pop %rbx"),
    "push16": (1, 1, "pushw %ax; popw %bx"),
    "push_mem": (2, 1, "pushq (%rbp); pop %rax"),
    "pop_mem": (1, 2, "push %rax; popq 8(%rbp)"),
    "push_pop_rsp": (1, 1, "push %rsp; pop %rsp"),
    "pop_mem_rsp": (1, 2, "push %rax; popq -64(%rsp)"),
    "pushf_popf": (1, 1, "pushfq; popfq"),
    "call_ret": (1, 1, "call just_return"),
    "call_next": (1, 1, "call 2f; 2: pop %rax"),
    "call_reg": (1, 1, "call *%rbx", "lea just_return(%rip), %rbx"),
    "call_mem": (2, 1, "call *pointer_return(%rip)"),
    "call_mem_rsp": (2, 2, "push %rbx; call *(%rsp); lea 8(%rsp), %rsp",
                     "lea just_return(%rip), %rbx"),
    "ret_imm": (1, 2, "push %rax; call return_8"),
    "jmp_mem": (1, 0, "jmp *pointer_back_N(%rip); 2:"),
    "jmp_reg": (0, 0, "lea 2f(%rip), %rbx; jmp *%rbx; 2:"),
    "jmp_table": (1, 0, "jmp *table_N(,%rbx,8); 2:", "mov $1, %ebx"),
    "leave": (1, 1, "push %rbp; mov %rsp, %rbp; leave"),
    "enter": (1, 1, "enter $16, $0; leave"),
    "loop": (5, 0, "mov $5, %ecx; 2: mov (%rbp), %rax; loop 2b"),
    "loope": (1, 0, "mov $5, %ecx; 2: mov (%rbp), %rax; cmp %rax, %rax; loopne 2b"),
    "jrcxz": (1, 0, "xor %ecx, %ecx; jrcxz 2f; mov (%rbp), %rax; 2: mov 8(%rbp), %rbx"),
    "jecxz": (1, 0, "mov $1, %ecx; jecxz 2f; mov (%rbp), %rax; 2:"),
    # String instructions, both directions.
    "movs_plain": (2, 2, "mov %rbp, %rsi; lea 64(%rbp), %rdi; movsb; movsq"),
    "stos_plain": (0, 2, "mov %rbp, %rdi; stosb; stosl"),
    "lods_plain": (2, 0, "mov %rbp, %rsi; lodsb; lodsq"),
    "scas_plain": (1, 0, "mov %rbp, %rdi; scasw"),
    "cmps_plain": (2, 0, "mov %rbp, %rsi; lea 64(%rbp), %rdi; cmpsb"),
    "rep_movsb": (37, 37, "mov %rbp, %rsi; lea 4096(%rbp), %rdi; mov $37, %ecx; rep movsb"),
    "rep_movsq": (12, 12, "mov %rbp, %rsi; lea 4096(%rbp), %rdi; mov $12, %ecx; rep movsq"),
    "rep_movsl_back": (9, 9, "std; lea 64(%rbp), %rsi; lea 4096(%rbp), %rdi; mov $9, %ecx; rep movsl; cld"),
    "rep_movs_overlap": (20, 20, "mov %rbp, %rsi; lea 1(%rbp), %rdi; mov $20, %ecx; rep movsb"),
    "rep_zero": (0, 0, "mov %rbp, %rsi; mov %rbp, %rdi; xor %ecx, %ecx; rep movsb; repne scasb"),
    "rep_stosb": (0, 50, "mov %rbp, %rdi; mov $50, %ecx; rep stosb"),
    "rep_stosq": (0, 11, "mov %rbp, %rdi; mov $11, %ecx; rep stosq"),
    "rep_stosw_back": (0, 6, "std; lea 64(%rbp), %rdi; mov $6, %ecx; rep stosw; cld"),
    "rep_lodsb": (8, 0, "mov %rbp, %rsi; mov $8, %ecx; rep lodsb"),
    "repne_scasb": (33, 0, "lea zeros(%rip), %rdi; mov $100, %ecx; mov $1, %al; repne scasb"),
    "repe_scasb": (33, 0, "lea zeros(%rip), %rdi; mov $100, %ecx; xor %eax, %eax; repe scasb"),
    "repe_cmpsb": (66, 0, "lea zeros(%rip), %rsi; lea all_zero(%rip), %rdi; mov $100, %ecx; repe cmpsb"),
    "repne_cmpsq": (2, 0, "lea zeros(%rip), %rsi; lea all_zero(%rip), %rdi; mov $9, %ecx; repne cmpsq"),
    "repe_scas_back": (5, 0, "std; lea zeros+20(%rip), %rdi; mov $5, %ecx; xor %eax, %eax; repe scasb; cld"),
    # x87 and state.
    "x87": (3, 3, "fldl (%rbp); fstpl 8(%rbp); fldt 32(%rbp); fstpt 48(%rbp); flds (%rbp); fstps 64(%rbp)"),
    "x87_int": (2, 2, "fildl (%rbp); fistpl 8(%rbp); fildll (%rbp); fisttpll 16(%rbp)"),
    "x87_arith": (3, 0, "fldz; fadds (%rbp); fmull 8(%rbp); fcoms (%rbp); fstp %st(0)"),
    "x87_control": (1, 2, "fnstcw (%rbp); fldcw (%rbp); fnstsw 8(%rbp)"),
    "mxcsr": (1, 1, "stmxcsr (%rbp); ldmxcsr (%rbp)"),
    "fxsave": (1, 1, "fxsave (%rbp); fxrstor (%rbp)"),
    "mmx": (2, 1, "movq (%rbp), %mm0; paddb 8(%rbp), %mm0; movq %mm0, 16(%rbp); emms"),
    # SSE.
    "sse_mov": (3, 3, "movaps (%rbp), %xmm0; movups 3(%rbp), %xmm1; movdqa (%rbp), %xmm2; movaps %xmm0, 64(%rbp);"
                " movups %xmm1, 81(%rbp); movntps %xmm2, 128(%rbp)"),
    "sse_scalar": (4, 2, "movsd (%rbp), %xmm0; addsd (%rbp), %xmm0; cvtsi2sdl (%rbp), %xmm1; ucomisd (%rbp), %xmm0;"
                   " movsd %xmm0, 64(%rbp); movss %xmm1, 72(%rbp)"),
    "sse_half": (2, 2, "movlps (%rbp), %xmm0; movhps 8(%rbp), %xmm0; movlps %xmm0, 64(%rbp); movhps %xmm0, 72(%rbp)"),
    "sse_int": (3, 1, "paddd (%rbp), %xmm0; pshufb (%rbp), %xmm0; pcmpeqb (%rbp), %xmm1; movq %xmm1, 64(%rbp)"),
    "sse4": (4, 2, "pinsrd $1, (%rbp), %xmm0; pmovzxbw (%rbp), %xmm1; movntdqa (%rbp), %xmm2;"
             " pcmpistri $0, (%rbp), %xmm3; pextrd $1, %xmm0, 64(%rbp); pextrb $2, %xmm0, 80(%rbp)"),
    "lddqu_movddup": (2, 0, "lddqu 1(%rbp), %xmm0; movddup (%rbp), %xmm1"),
    "maskmovdqu": (0, 1, "mov %rbp, %rdi; maskmovdqu %xmm1, %xmm0", "pcmpeqb %xmm1, %xmm1"),
    "aes": (1, 0, "aesenc (%rbp), %xmm0", "", "aes"),
    # AVX.
    "avx_mov": (2, 2, "vmovups 5(%rbp), %ymm0; vmovdqa (%rbp), %ymm1; vmovups %ymm0, 65(%rbp);"
                " vmovntdq %ymm1, 128(%rbp)", "", "avx2"),
    "avx_arith": (3, 0, "vaddpd (%rbp), %ymm0, %ymm1; vfmadd231sd (%rbp), %xmm0, %xmm1; vpaddq 32(%rbp), %ymm0, %ymm2",
                  "", "avx2"),
    "avx_broadcast": (3, 0, "vbroadcastss (%rbp), %ymm0; vpbroadcastb (%rbp), %ymm1; vbroadcasti128 (%rbp), %ymm2",
                      "", "avx2"),
    "avx_extract": (1, 1, "vinsertf128 $1, (%rbp), %ymm0, %ymm0; vextractf128 $1, %ymm0, 64(%rbp)", "", "avx2"),
    "f16c": (1, 1, "vcvtph2ps (%rbp), %ymm0; vcvtps2ph $0, %ymm0, 64(%rbp)", "", "f16c"),
}

# Forms with an element mask: how many references a masked operand is follows docs/accuracy.md (a masked access
# is one reference if any element is touched, none if no element is; a gather or scatter one per element).
MASKED = {
    "avx_maskmov": (1, 1, "vmaskmovps (%rbp), %ymm0, %ymm1; vmaskmovps %ymm1, %ymm0, 64(%rbp)",
                    "vpcmpeqd %ymm0, %ymm0, %ymm0", "avx2"),
    "avx_maskmov_none": (0, 0, "vpmaskmovd (%rbp), %ymm0, %ymm1; vpmaskmovd %ymm1, %ymm0, 64(%rbp)",
                         "vpxor %ymm0, %ymm0, %ymm0", "avx2"),
    "avx2_gather": (8, 0, "vpcmpeqd %ymm0, %ymm0, %ymm0; vpgatherdd %ymm0, (%rbp,%ymm1,4), %ymm2",
                    "vmovdqu indices(%rip), %ymm1", "avx2"),
    "avx2_gather_part": (3, 0, "vmovdqa %ymm3, %ymm0; vgatherdpd %ymm0, (%rbp,%xmm1,8), %ymm2",
                         "vmovdqu indices(%rip), %ymm1; vmovdqu three_of_four(%rip), %ymm3", "avx2"),
    "avx512_mov": (2, 2, "vmovups 5(%rbp), %zmm0; vmovdqa64 (%rbp), %zmm17; vmovups %zmm0, 65(%rbp);"
                   " vmovntdq %zmm17, 192(%rbp)", "", "avx512vl"),
    "avx512_embedded_broadcast": (2, 0, "vaddps (%rbp){1to16}, %zmm0, %zmm1; vpaddq 8(%rbp){1to4}, %ymm0, %ymm16", "",
                                  "avx512vl"),
    "avx512_disp8": (1, 1, "vmovdqu32 0x1fc0(%rbp), %zmm30; vmovdqu32 %zmm30, -0x40(%rbp)", "", "avx512vl"),
    "avx512_masked": (1, 1, "vmovdqu32 (%rbp), %zmm1{%k1}{z}; vmovdqu32 %zmm1, 64(%rbp){%k1}",
                      "mov $0x0ff0, %eax; kmovw %eax, %k1", "avx512vl"),
    "avx512_masked_none": (0, 0, "vmovdqu32 (%rbp), %zmm1{%k1}{z}; vmovdqu32 %zmm1, 64(%rbp){%k1}",
                           "kxorw %k1, %k1, %k1", "avx512vl"),
    "avx512_masked_byte": (1, 1, "vmovdqu8 (%rbp), %ymm1{%k1}{z}; vmovdqu8 %ymm1, 64(%rbp){%k1}",
                           "mov $0x80000000, %eax; kmovd %eax, %k1", "avx512bw"),
    "avx512_gather": (16, 0, "kxnorw %k1, %k1, %k1; vpgatherdd (%rbp,%zmm1,4), %zmm2{%k1}",
                      "vmovdqu32 indices(%rip), %zmm1", "avx512vl"),
    "avx512_gather_part": (5, 0, "kmovw %eax, %k1; vgatherdps (%rbp,%zmm1,4), %zmm2{%k1}",
                           "vmovdqu32 indices(%rip), %zmm1; mov $0x1234, %eax", "avx512vl"),
    # Two doubles, though there are four indices in the register and more ones in the mask.
    "avx512_gather_two": (2, 0, "kxnorw %k1, %k1, %k1; vgatherdpd (%rbp,%xmm1,8), %xmm2{%k1}",
                          "vpxor %xmm1, %xmm1, %xmm1", "avx512vl"),
    "avx512_scatter": (0, 16, "kxnorw %k1, %k1, %k1; vpscatterdd %zmm2, (%rbp,%zmm1,4){%k1}",
                       "vmovdqu32 indices(%rip), %zmm1", "avx512vl"),
    "avx512_scatter_part": (0, 2, "kmovw %eax, %k1; vscatterdpd %zmm2, (%rbp,%ymm1,8){%k1}",
                            "vmovdqu32 indices(%rip), %zmm1; mov $0x81, %eax", "avx512vl"),
    "kmov_mem": (1, 1, "kmovw (%rbp), %k1; kmovq %k1, 8(%rbp)", "", "avx512bw"),
    "avx512_narrow": (0, 2, "vpmovdb %zmm0, (%rbp); vpmovqd %zmm0, 64(%rbp)", "", "avx512vl"),
    "avx512_expand": (1, 1, "vpcompressd %zmm0, (%rbp){%k1}; vpexpandd 64(%rbp), %zmm1{%k1}{z}",
                      "mov $0x0101, %eax; kmovw %eax, %k1", "avx512vl"),
}
ALL = {**CASES, **MASKED}

HEAD = """
.section .note.GNU-stack,"",@progbits
.data
.balign 65536
.zero 65536
data: .zero 131072
own_data: .zero 64
divisor: .long 3
.balign 64
zeros: .zero 32
.byte 1
.zero 200
all_zero: .zero 256
low_data: .zero 64
.balign 64
indices: .long 0,17,34,51,68,85,102,119,136,153,170,187,204,221,238,255
three_of_four: .quad -1,0,-1,-1
pointer_return: .quad just_return
.text
just_return: ret
return_8: ret $8
"""


def cpu_flags():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("flags"):
                return set(line.split(":")[1].split())
    return set()


def source():
    """One function a case, `case_NAME(rounds)`, and a table of them all."""
    out = [HEAD]
    for i, (name, case) in enumerate(ALL.items()):
        body, setup = case[2], case[3] if len(case) > 3 else ""
        body = body.replace("_N(", f"_{i}(")
        data = ""
        if "pointer_back" in body or "table_" in body:
            body = body.replace("2:", f"back_{i}:")
            data = f".data\npointer_back_{i}: .quad back_{i}\ntable_{i}: .quad 0, back_{i}\n.text\n"
        out.append(f"""{data}.globl case_{name}
case_{name}:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rdi, %r15
    lea data(%rip), %rbp
    mov %rbp, %r12
    mov %rsp, %r14
    xor %eax, %eax; xor %ebx, %ebx; xor %ecx, %ecx; xor %edx, %edx
    {setup}
    .balign 32
1:  {body}
    dec %r15
    jnz 1b
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
""")
    return "\n".join(out)


DRIVER = """/* exact: runs the case that argv[1] names argv[2] times. No library call after the start. */
#include <stdlib.h>
#include <string.h>
#define CASE(n) void case_##n(long);
#include "cases.inc"
#undef CASE
#define CASE(n) {#n, case_##n},
static const struct { const char *name; void (*run)(long); } cases[] = {
#include "cases.inc"
};
int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, argv[1])) {
            cases[i].run(atol(argv[2]));
            return 0;
        }
    return 2;
}
"""


@pytest.fixture(scope="session")
def exact(tmp_path_factory):
    d = tmp_path_factory.mktemp("exact")
    (d / "cases.S").write_text(source())
    (d / "driver.c").write_text(DRIVER)
    (d / "cases.inc").write_text("".join(f"CASE({n})\n" for n in ALL))
    # Not position-independent: some cases need data below 2 GB.
    subprocess.run(["gcc", "-O1", "-no-pie", "-Wl,-z,now", "-I", d, "-o", d / "exact", d / "driver.c", d / "cases.S"],
                   check=True)
    return d / "exact"


@pytest.mark.parametrize("name", ALL)
def test_exact(exact, record, name):
    loads, stores, *rest = ALL[name]
    if len(rest) > 2 and not set(rest[2].split()) <= cpu_flags():
        pytest.skip(f"the CPU lacks {rest[2]}")
    seen = []
    for rounds in (ROUNDS, 2 * ROUNDS):
        # Without address randomisation start-up touches the same in both runs.
        result, db = record(FULL, [exact, name, rounds], wrap=["setarch", "-R"])
        assert result.status == 0, result.err
        seen.append(totals(db))
    difference = {k: seen[1][k] - seen[0][k] for k in ("loads", "stores", "references")}
    assert difference == {"loads": loads * ROUNDS, "stores": stores * ROUNDS, "references": (loads + stores) * ROUNDS}


def test_cases_run_natively(exact):
    for name, case in ALL.items():
        if len(case) > 4 and not set(case[4].split()) <= cpu_flags():
            continue
        assert run([exact, name, ROUNDS]).status == 0, name
