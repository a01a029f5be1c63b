#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Configures a meson build folder (once, and again when the options asked for change), then builds.
#
# usage: scripts/build.sh FOLDER [-DOPTION=VALUE...]
set -eu
cd "$(dirname "$0")/.."

folder=$1
shift
mkdir -p "$folder"
if [ ! -f "$folder/build.ninja" ]; then
    meson setup "$folder" "$@"
elif [ $# -gt 0 ] && [ "$(cat "$folder/options" 2>/dev/null)" != "$*" ]; then
    meson configure "$folder" "$@"
fi
if [ $# -gt 0 ]; then
    echo "$*" >"$folder/options"
fi
ninja -C "$folder"
