/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.h - whether this processor can count references in a vector register
 * (agent/translator/x86_64/count.h).
 */
#ifndef CACHEGRAM_VECTORS_H
#define CACHEGRAM_VECTORS_H

/*
 * Number of the vector register: 31 with AVX-512VL, which programs use least; 15 with AVX2; 0: not possible
 * (BMI2 is needed too, and a kernel that saves these registers).
 */
unsigned vectors_for_counting(void);

#endif
