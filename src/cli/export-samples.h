/* SPDX-License-Identifier: Apache-2.0 */
/* export-samples.h - exports the samples of a profile in another tool's format. */
#ifndef CACHEGRAM_EXPORT_SAMPLES_H
#define CACHEGRAM_EXPORT_SAMPLES_H

/* Writes the sparse samples of the profile as a USF file ("-": stdout). The exit status. */
int export_samples(const char *profile, const char *output);

#endif
