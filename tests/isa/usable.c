/* SPDX-License-Identifier: Apache-2.0 */
#include "usable.h"
#include <cpuid.h>

static unsigned char offered[ZYDIS_ISA_SET_MAX_VALUE + 1];

static void offer(const ZydisISASet *sets, unsigned n, int have)
{
    for (unsigned i = 0; i < n; i++)
        offered[sets[i]] = have != 0;
}
#define OFFER(have, ...)                               \
    do {                                               \
        const ZydisISASet sets[] = {__VA_ARGS__};      \
        offer(sets, sizeof sets / sizeof *sets, have); \
    } while (0)
#define SET(name) ZYDIS_ISA_SET_##name
#define SIZES(name) SET(name##_128), SET(name##_256), SET(name##_512)

static void offer_avx512(void)
{
    int f = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    OFFER(f, SIZES(AVX512F), SET(AVX512F_128N), SET(AVX512F_KOP), SET(AVX512F_SCALAR));
    OFFER(f && __builtin_cpu_supports("avx512bw"), SIZES(AVX512BW), SET(AVX512BW_128N), SET(AVX512BW_KOP));
    OFFER(f && __builtin_cpu_supports("avx512dq"), SIZES(AVX512DQ), SET(AVX512DQ_128N), SET(AVX512DQ_KOP),
          SET(AVX512DQ_SCALAR));
    OFFER(f && __builtin_cpu_supports("avx512cd"), SIZES(AVX512CD));
    OFFER(f && __builtin_cpu_supports("avx512vbmi"), SIZES(AVX512_VBMI));
    OFFER(f && __builtin_cpu_supports("avx512vbmi2"), SIZES(AVX512_VBMI2));
    OFFER(f && __builtin_cpu_supports("avx512ifma"), SIZES(AVX512_IFMA));
    OFFER(f && __builtin_cpu_supports("avx512vnni"), SIZES(AVX512_VNNI));
    OFFER(f && __builtin_cpu_supports("avx512bitalg"), SIZES(AVX512_BITALG));
    OFFER(f && __builtin_cpu_supports("avx512vpopcntdq"), SIZES(AVX512_VPOPCNTDQ));
    OFFER(f && __builtin_cpu_supports("avx512bf16"), SIZES(AVX512_BF16));
    OFFER(f && __builtin_cpu_supports("avx512vp2intersect"), SIZES(AVX512_VP2INTERSECT));
    OFFER(f && __builtin_cpu_supports("gfni"), SIZES(AVX512_GFNI));
    OFFER(f && __builtin_cpu_supports("vaes"), SIZES(AVX512_VAES));
    OFFER(f && __builtin_cpu_supports("vpclmulqdq"), SIZES(AVX512_VPCLMULQDQ));
}

void usable_init(void)
{
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    __get_cpuid(1, &a, &b, &c, &d);
    OFFER(1, SET(I86), SET(I186), SET(I386), SET(I486), SET(I486REAL), SET(I286REAL), SET(PENTIUMREAL),
          SET(PENTIUMMMX), SET(PPRO), SET(CMOV), SET(FCMOV), SET(FAT_NOP), SET(LAHF), SET(LONGMODE), SET(X87),
          SET(SSE), SET(SSE2), SET(SSE2MMX), SET(SSEMXCSR), SET(CLFSH), SET(PAUSE), SET(PREFETCH_NOP),
          SET(SSE_PREFETCH));
    OFFER(__builtin_cpu_supports("sse3"), SET(SSE3), SET(SSE3X87));
    OFFER(__builtin_cpu_supports("ssse3"), SET(SSSE3), SET(SSSE3MMX));
    OFFER(__builtin_cpu_supports("sse4.1"), SET(SSE4));
    OFFER(__builtin_cpu_supports("sse4.2"), SET(SSE42));
    OFFER(__builtin_cpu_supports("sse4a"), SET(SSE4A));
    OFFER(__builtin_cpu_supports("popcnt"), SET(POPCNT));
    OFFER(__builtin_cpu_supports("lzcnt"), SET(LZCNT));
    OFFER(__builtin_cpu_supports("bmi"), SET(BMI1));
    OFFER(__builtin_cpu_supports("bmi2"), SET(BMI2));
    OFFER(__builtin_cpu_supports("adx"), SET(ADOX_ADCX));
    OFFER(__builtin_cpu_supports("sha"), SET(SHA));
    OFFER(__builtin_cpu_supports("aes"), SET(AES));
    OFFER(__builtin_cpu_supports("pclmul"), SET(PCLMULQDQ));
    OFFER(__builtin_cpu_supports("avx"), SET(AVX));
    OFFER(__builtin_cpu_supports("avx") && __builtin_cpu_supports("aes"), SET(AVXAES));
    OFFER(__builtin_cpu_supports("avx2"), SET(AVX2), SET(AVX2GATHER));
    OFFER(__builtin_cpu_supports("fma"), SET(FMA));
    OFFER(__builtin_cpu_supports("f16c"), SET(F16C));
    OFFER(__builtin_cpu_supports("fma4"), SET(FMA4));
    OFFER(__builtin_cpu_supports("xop"), SET(XOP));
    OFFER(__builtin_cpu_supports("tbm"), SET(TBM));
    OFFER(__builtin_cpu_supports("gfni"), SET(GFNI));
    OFFER(__builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx"), SET(AVX_GFNI));
    OFFER(__builtin_cpu_supports("vaes"), SET(VAES));
    OFFER(__builtin_cpu_supports("vpclmulqdq"), SET(VPCLMULQDQ));
    OFFER(__builtin_cpu_supports("avxvnni"), SET(AVX_VNNI));
    OFFER(__builtin_cpu_supports("clflushopt"), SET(CLFLUSHOPT));
    OFFER(__builtin_cpu_supports("clwb"), SET(CLWB));
    OFFER(c & bit_MOVBE, SET(MOVBE));
    OFFER(c & bit_CMPXCHG16B, SET(CMPXCHG16B));
    offer_avx512();
}

static int usable_category(const ZydisDecodedInstruction *in)
{
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_SEGOP:
        return 0;
    default:
        return 1;
    }
}

static int usable_mnemonic(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_CLI: /* faults, always; the generator has it where it wants that */
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_LEAVE: /* both only where the generator has set up a frame */
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_POPF: /* only with flags that do no harm */
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_FNSTENV: /* with the last instruction's address */
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_LDMXCSR: /* of any memory: floating-point exceptions for ever after */
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_FLDCW:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
    case ZYDIS_MNEMONIC_SLDT:
        return 0;
    default:
        return 1;
    }
}

int usable(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    if (!offered[in->meta.isa_set] || !usable_category(in) || !usable_mnemonic(in->mnemonic) ||
        in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
        return 0;
    for (unsigned i = 0; i < in->operand_count; i++) {
        if (op[i].type == ZYDIS_OPERAND_TYPE_POINTER)
            return 0;
        if (op[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        ZydisRegister r = op[i].reg.value;
        ZydisRegisterClass class = ZydisRegisterGetClass(r);
        int writes = (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
        if (class == ZYDIS_REGCLASS_SEGMENT && writes)
            return 0;
        if (class == ZYDIS_REGCLASS_CONTROL || class == ZYDIS_REGCLASS_DEBUG || class == ZYDIS_REGCLASS_TEST)
            return 0;
        /* A processor (AMD, family 26) was seen to read a stack pointer of some pushes ago where EVEX.X,
         * which has no meaning next to a general register, is set. */
        if (in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r) == ZYDIS_REGISTER_RSP)
            return 0;
        /* The stack pointer is for push and pop, and for the generator. */
        if (writes && op[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r) == ZYDIS_REGISTER_RSP)
            return 0;
    }
    return 1;
}
