/* SPDX-License-Identifier: Apache-2.0 */
/* export-profile.h - `cachegram export` of a profile: its results in formats of other tools. */
#ifndef CACHEGRAM_CLI_EXPORT_PROFILE_H
#define CACHEGRAM_CLI_EXPORT_PROFILE_H

/* Nonzero: a format of profiles, not of traces. */
int export_profile_format(const char *format);
/* For --help. */
extern const char export_profile_help[];
/* `profile` in that format, to the file `output` ("-": standard output); the exit status. */
int export_profile(const char *profile, const char *format, double size_bytes, const char *output);

#endif
