/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.h - what this processor has of what generated code of the agent needs: a vector register to count
 * references in (agent/translator/x86_64/count.h), and instructions that leave flags alone. */
#ifndef CACHEGRAM_VECTORS_H
#define CACHEGRAM_VECTORS_H

/*
 * Number of the vector register: 31 with AVX-512VL, which programs use least; 15 with AVX2; 0: not possible
 * (BMI2 is needed too, and a kernel that saves these registers).
 */
unsigned vectors_for_counting(void);

/* BMI2, without which the agent cannot filter lines (agent/translator/x86_64/filter.h). */
int vectors_have_bmi2(void);

#endif
