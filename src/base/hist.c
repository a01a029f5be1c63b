/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.c - the bins.
 *
 * A bin above HIST_EXACT is one of HIST_SUB = 256 geometric steps of an octave: step s of the octave
 * [2^k, 2^(k+1)) starts at floor(2^(k + s/256)). All edges come from one table for the octave of 2^47,
 *
 *     octave[s] = floor(2^(47 + s/256)),     edge(k, s) = octave[s] >> (47 - k),
 *
 * which is exact because floor(floor(x) / 2^n) = floor(x / 2^n). So bins are the same on every machine
 * and with every math library, which a file format needs.
 *
 * Example: 1448 lies in the octave k = 10. Step 128 starts at floor(2^10.5) = floor(1448.15) = 1448, so
 * 1448 is in bin 1024 + 0 * 256 + 128 = 1152, and 1447 in bin 1151, which holds 1444 (octave[127] >> 37) to
 * 1447.
 *
 * To find the step of v: edge(k, s) <= v is equivalent to octave[s] < (v + 1) << (47 - k). The eight bits
 * after v's leading one give a cell of 1/256 of the octave; cell[] has the last step that starts at or before
 * that cell. As a cell spans at most 1.45 steps, at most two comparisons remain (hist_bin, in the header,
 * since every profiled reference uses it).
 */
#include "base/hist.h"

#include <assert.h>
#include <stddef.h>

#define FIRST_OCTAVE HIST_FIRST_OCTAVE
#define LAST_OCTAVE HIST_LAST_OCTAVE

static_assert(HIST_EXACT == 1u << FIRST_OCTAVE, "exact bins end where the octaves begin");
static_assert(HIST_BINS == HIST_EXACT + HIST_SUB * (LAST_OCTAVE - FIRST_OCTAVE + 1), "octaves 10 to 47");

/* floor(2^(47 + s/256)), computed with integer roots. */
/* clang-format off */
const uint64_t hist_octave[HIST_SUB + 1] = {
    0x800000000000, 0x8058d7d2d5e5, 0x80b1ed4fd999, 0x810b40a1d814, 0x8164d1f3bc03,
    0x81bea1708dde, 0x8218af4373fc, 0x8272fb97b2a5, 0x82cd8698ac2b, 0x83285071e0fc,
    0x8383594eefb6, 0x83dea15b9541, 0x843a28c3acde, 0x8495efb3303e, 0x84f1f656379c,
    0x854e3cd8f9c8, 0x85aac367cc48, 0x86078a2f2364, 0x8664915b923f, 0x86c1d919caef,
    0x871f61969e8d, 0x877d2afefd4e, 0x87db357ff698, 0x88398146b919, 0x88980e8092da,
    0x88f6dd5af155, 0x8955ee03618e, 0x89b540a79025, 0x8a14d575496e, 0x8a74ac9a7989,
    0x8ad4c6452c72, 0x8b3522a38e1e, 0x8b95c1e3ea8b, 0x8bf6a434adde, 0x8c57c9c4646f,
    0x8cb932c1bae9, 0x8d1adf5b7e5b, 0x8d7ccfc09c50, 0x8ddf042022e6, 0x8e417ca940e3,
    0x8ea4398b45cd, 0x8f073af5a201, 0x8f6a8117e6c8, 0x8fce0c21c672, 0x9031dc431466,
    0x9095f1abc540, 0x90fa4c8beee4, 0x915eed13c896, 0x91c3d373ab11, 0x9228ffdc10a0,
    0x928e727d9531, 0x92f42b88f673, 0x935a2b2f13e6, 0x93c071a0eef9, 0x9426ff0fab1c,
    0x948dd3ac8ddb, 0x94f4efa8fef7, 0x955c53368878, 0x95c3fe86d6cc, 0x962bf1cbb8d9,
    0x96942d372018, 0x96fcb0fb20ac, 0x97657d49f17a, 0x97ce9255ec43, 0x9837f0518db8,
    0x98a1976f7597, 0x990b87e266c1, 0x9975c1dd4751, 0x99e0459320b7, 0x9a4b13371fd1,
    0x9ab62afc94ff, 0x9b218d16f441, 0x9b8d39b9d54e, 0x9bf93118f3aa, 0x9c6573682ec3,
    0x9cd200db8a07, 0x9d3ed9a72cff, 0x9dabfdff6367, 0x9e196e189d47, 0x9e872a276f0b,
    0x9ef5326091a1, 0x9f6386f8e28b, 0x9fd228256400, 0xa041161b3d01, 0xa0b0510fb971,
    0xa11fd9384a34, 0xa18faeca8544, 0xa1ffd1fc25ce, 0xa27043030c49, 0xa2e102153e91,
    0xa3520f68e802, 0xa3c36b345991, 0xa43515ae09e6, 0xa4a70f0c9576, 0xa5195786be9e,
    0xa58bef536dbe, 0xa5fed6a9b151, 0xa6720dc0be08, 0xa6e594cfeee8, 0xa7596c0ec55f,
    0xa7cd93b4e965, 0xa8420bfa298f, 0xa8b6d5167b32, 0xa92bef41fa77, 0xa9a15ab4ea7c,
    0xaa1717a7b569, 0xaa8d2652ec90, 0xab0386ef4886, 0xab7a39b5a93e, 0xabf13edf1626,
    0xac6896a4be3f, 0xace0413ff83e, 0xad583eea42a1, 0xadd08fdd43d0, 0xae493452ca35,
    0xaec22c84cc5c, 0xaf3b78ad690a, 0xafb51906e75b, 0xb02f0dcbb6e0, 0xb0a957366fb7,
    0xb123f581d2ac, 0xb19ee8e8c94f, 0xb21a31a66618, 0xb295cff5e47d, 0xb311c412a911,
    0xb38e0e38419f, 0xb40aaea2654b, 0xb487a58cf4a9, 0xb504f333f9de, 0xb58297d3a8b9,
    0xb60093a85ed5, 0xb67ee6eea3b2, 0xb6fd91e328d1, 0xb77c94c2c9d7, 0xb7fbefca8ca4,
    0xb87ba337a174, 0xb8fbaf4762fb, 0xb97c14375684, 0xb9fcd2452c0b, 0xba7de9aebe5f,
    0xbaff5ab2133e, 0xbb81258d5b70, 0xbc034a7ef2e9, 0xbc85c9c560e7, 0xbd08a39f580c,
    0xbd8bd84bb67e, 0xbe0f68098609, 0xbe935317fc37, 0xbf1799b67a73, 0xbf9c3c248e24,
    0xc0213aa1f0d0, 0xc0a6956e8836, 0xc12c4cca6670, 0xc1b260f5ca0f, 0xc238d2311e3d,
    0xc2bfa0bcfad9, 0xc346ccda2497, 0xc3ce56c98d21, 0xc4563ecc5334, 0xc4de8523c2c0,
    0xc5672a115506, 0xc5f02dd6b0bb, 0xc67990b5aa24, 0xc70352f04336, 0xc78d74c8abb9,
    0xc817f6814164, 0xc8a2d85c8ffe, 0xc92e1a9d517f, 0xc9b9bd866e2f, 0xca45c15afcc7,
    0xcad2265e4290, 0xcb5eecd3b385, 0xcbec14fef272, 0xcc799f23d115, 0xcd078b86503d,
    0xcd95da6a9ff0, 0xce248c151f84, 0xceb3a0ca5dc6, 0xcf4318cf1919, 0xcfd2f4683f94,
    0xd06333daef2b, 0xd0f3d76c75c5, 0xd184df625169, 0xd2164c023056, 0xd2a81d91f12a,
    0xd33a5457a302, 0xd3ccf099859a, 0xd45ff29e0972, 0xd4f35aabcfed, 0xd5872909ab75,
    0xd61b5dfe9f9b, 0xd6aff9d1e13b, 0xd744fccad69d, 0xd7da67311797, 0xd870394c6db3,
    0xd9067364d44a, 0xd99d15c278af, 0xda3420adba4d, 0xdacb946f2ac9, 0xdb63714f8e29,
    0xdbfbb797daf2, 0xdc9467913a4f, 0xdd2d81850832, 0xddc705bcd378, 0xde60f4825e0e,
    0xdefb4e1f9d10, 0xdf9612deb8f0, 0xe031430a0d99, 0xe0ccdeec2a94, 0xe168e6cfd329,
    0xe2055afffe83, 0xe2a23bc7d7d9, 0xe33f8972be8a, 0xe3dd444c4649, 0xe47b6ca0373d,
    0xe51a02ba8e26, 0xe5b906e77c83, 0xe658797368b3, 0xe6f85aaaee1f, 0xe798aadadd5b,
    0xe8396a503c4b, 0xe8da9958464b, 0xe97c38406c4f, 0xea1e4756550e, 0xeac0c6e7dd24,
    0xeb63b7431736, 0xec0718b64c1c, 0xecaaeb8ffb03, 0xed4f301ed994, 0xedf3e6b1d418,
    0xee990f980da3, 0xef3eab20e032, 0xefe4b99bdcda, 0xf08b3b58cbe8, 0xf13230a7ad09,
    0xf1d999d8b770, 0xf281773c59ff, 0xf329c9233b6b, 0xf3d28fde3a64, 0xf47bcbbe6db9,
    0xf5257d152486, 0xf5cfa433e653, 0xf67a416c733f, 0xf7255510c428, 0xf7d0df730ad1,
    0xf87ce0e5b209, 0xf92959bb5dd4, 0xf9d64a46eb93, 0xfa83b2db722a, 0xfb3193cc4227,
    0xfbdfed6ce5f0, 0xfc8ec01121e4, 0xfd3e0c0cf486, 0xfdedd1b496a8, 0xfe9e115c7b8f,
    0xff4ecb59511e, UINT64_MAX,
};

/* Largest s with octave[s] <= (256 + cell) << 39. */
const uint8_t hist_cell[256] = {
    0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16, 18, 19, 21,
    22, 23, 25, 26, 27, 29, 30, 31, 33, 34, 35, 37, 38, 39, 40, 42,
    43, 44, 46, 47, 48, 49, 51, 52, 53, 54, 56, 57, 58, 59, 61, 62,
    63, 64, 65, 67, 68, 69, 70, 71, 73, 74, 75, 76, 77, 78, 80, 81,
    82, 83, 84, 85, 87, 88, 89, 90, 91, 92, 93, 94, 96, 97, 98, 99,
    100, 101, 102, 103, 104, 105, 106, 108, 109, 110, 111, 112, 113, 114, 115, 116,
    117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 131, 132, 133,
    134, 135, 136, 137, 138, 139, 140, 140, 141, 142, 143, 144, 145, 146, 147, 148,
    149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 162, 163,
    164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 173, 174, 175, 176, 177, 178,
    179, 180, 181, 181, 182, 183, 184, 185, 186, 187, 188, 188, 189, 190, 191, 192,
    193, 194, 194, 195, 196, 197, 198, 199, 200, 200, 201, 202, 203, 204, 205, 205,
    206, 207, 208, 209, 209, 210, 211, 212, 213, 214, 214, 215, 216, 217, 218, 218,
    219, 220, 221, 222, 222, 223, 224, 225, 225, 226, 227, 228, 229, 229, 230, 231,
    232, 232, 233, 234, 235, 235, 236, 237, 238, 239, 239, 240, 241, 242, 242, 243,
    244, 245, 245, 246, 247, 247, 248, 249, 250, 250, 251, 252, 253, 253, 254, 255,
};
/* clang-format on */

uint64_t hist_edge(uint32_t bin)
{
    assert(bin <= HIST_BINS);
    if (bin < HIST_EXACT)
        return bin;
    if (bin == HIST_BINS)
        return UINT64_C(1) << (LAST_OCTAVE + 1);
    uint32_t above = bin - HIST_EXACT;
    return hist_octave[above % HIST_SUB] >> (LAST_OCTAVE - FIRST_OCTAVE - above / HIST_SUB);
}

void hist_add(struct hist *h, uint64_t value, uint64_t count)
{
    h->count[hist_bin(value)] += count;
    h->total += count;
}

void hist_add_up_to(struct hist *h, uint64_t n)
{
    for (uint32_t bin = 0; bin < HIST_BINS && hist_edge(bin) < n; bin++) {
        uint64_t end = hist_edge(bin + 1);
        h->count[bin] += (end < n ? end : n) - hist_edge(bin);
    }
    h->total += n;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    for (size_t i = 0; i < HIST_BINS; i++)
        into->count[i] += from->count[i];
    into->total += from->total;
}

double hist_bin_at_least(uint32_t bin, uint64_t count, uint64_t above, double value)
{
    double low = (double)hist_edge(bin), high = (double)hist_edge(bin + 1);
    return (double)above + (double)count * (high - value) / (high - low);
}

double hist_at_least(const struct hist *h, double value)
{
    uint64_t above = 0;
    /* Values beyond the last edge are all in the last bin: they are only known to have reached it. */
    if (!(value > 0) || value >= (double)hist_edge(HIST_BINS))
        return value > 0 ? 0 : (double)h->total;
    uint32_t bin = hist_bin((uint64_t)value);
    for (uint32_t from = HIST_BINS; --from > bin;)
        above += h->count[from];
    return hist_bin_at_least(bin, h->count[bin], above, value);
}
