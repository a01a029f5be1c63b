# SPDX-License-Identifier: Apache-2.0
"""The command line of `record`, for all that runs it in several modes."""
DEBUG = "CACHEGRAM_DEBUG="


def parts(full, counted=4000000000):
    """Ends full mode, and then counting, after so many references: the machine's speed does not matter."""
    return [f"{DEBUG}full-refs={full}", f"{DEBUG}count-refs={counted}"]


def record_command(cachegram, db, options):
    """Up to the options. Those that are CACHEGRAM_DEBUG=... (tests/README.md) become part of its environment."""
    options = [str(option) for option in options]
    debug = [option for option in options if option.startswith(DEBUG)]
    prefix = ["env", DEBUG + ",".join(option[len(DEBUG):] for option in debug)] if debug else []
    return [*prefix, str(cachegram), "record", "-o", str(db), *(o for o in options if o not in debug)]
