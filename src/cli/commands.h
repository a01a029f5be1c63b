/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - one function per command. argv[0] is its own name. It returns the exit status: 0 success, 1
 * failure, 2 wrong usage (record: that of the program).
 */
#ifndef CACHEGRAM_COMMANDS_H
#define CACHEGRAM_COMMANDS_H

int cmd_record(int argc, char **argv);
int cmd_mrc(int argc, char **argv);
int cmd_hotspots(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_causes(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_phases(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_html(int argc, char **argv);
int cmd_stack(int argc, char **argv);
int cmd_sample(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_corun(int argc, char **argv);
int cmd_machine(int argc, char **argv);
int cmd_pirate(int argc, char **argv);
int cmd_place(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_verify(int argc, char **argv);

#endif
