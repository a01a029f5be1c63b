/* SPDX-License-Identifier: Apache-2.0 */
/* this-machine.h - cache sizes to mark in curves: of this machine, and of the one that a profile is of. */
#ifndef CACHEGRAM_CLI_THIS_MACHINE_H
#define CACHEGRAM_CLI_THIS_MACHINE_H

#include "profile/profile.h"
#include "report/page.h"

struct cli_machines {
    struct report_page_machine list[2];
    size_t n; /* 1 if they are the same, or only one is known */
    char host[256], cpu[256];
    struct machine here;
};

/* The machine of the recording is the first one, if the profile has its caches. */
void cli_machines_find(struct profile *p, struct cli_machines *m);
/* The last of them: the one that the command runs on, unless the system reports no caches; NULL: none is
 * known. */
const struct report_page_machine *cli_this_machine(const struct cli_machines *m);

/* What the profile's curve, which may be that of a cache for each thread, says about that machine. Nonzero:
 * *answer is filled. */
int cli_answer(struct profile *p, const struct cli_machines *m, const struct analysis_curve *curve,
               struct analysis_answer *answer);

#endif
