/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-help.c - `cachegram help [COMMAND]`. */
#include "cli/cli.h"

#include <string.h>

int cmd_help(int argc, char **argv)
{
    if (argc > 2)
        return cli_misuse("help", "one command at a time");
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        cli_help_all();
        return 0;
    }
    if (argv[1][0] == '-')
        return cli_misuse("help", "unknown option '%s'", argv[1]);
    return cli_help_of(argv[1]);
}
