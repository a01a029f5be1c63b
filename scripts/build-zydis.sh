#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes build/third_party/libzydis.a and build/third_party/include from Debian's source package.
#
# Why: the agent may not depend on libraries of the target's world, so its decoder is linked
# statically; Debian ships Zydis as a shared library only. The source package comes from the
# machine's own package mirror, with apt's usual signature checks, in the version of the installed
# libzydis-dev, whose headers thus fit. Nothing of the system's apt set-up is changed.
#
# usage: scripts/build-zydis.sh [OUTPUT_FOLDER]
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/build/third_party}
apt_dir=${CACHEGRAM_APT_DIR:-/etc/apt}

fail() {
    echo "build-zydis.sh: $*" >&2
    exit 1
}

# shellcheck disable=SC2016 # ${...} is for dpkg-query
version=$(dpkg-query -W -f '${source:Version}' libzydis-dev 2>/dev/null) ||
    fail "libzydis-dev is not installed; run scripts/install-deps.sh build first"

# The decoder alone: no formatter, no encoder. Hidden symbols, so that the agent exports none of
# them. No stack protector: the decoder runs on behalf of threads in the middle of anything.
flags="-std=gnu11 -O2 -mgeneral-regs-only -fPIC -fvisibility=hidden -fno-stack-protector -fno-plt -ffunction-sections
 -fdata-sections -DNDEBUG -DZYDIS_STATIC_BUILD -DZYAN_STATIC_BUILD -DZYDIS_DISABLE_FORMATTER
 -DZYDIS_DISABLE_ENCODER"

stamp="zydis $version $flags"
if [ -f "$out/libzydis.a" ] && [ "$(cat "$out/libzydis.stamp" 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/src"
chmod -R a+rx "$tmp"

# Source-package twins of the machine's Debian entries, in the two formats that apt knows.
for file in "$apt_dir"/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk 'BEGIN { RS = ""; ORS = "\n\n" }
         tolower($0) ~ /\nuris:[^\n]*debian/ || tolower($0) ~ /^uris:[^\n]*debian/ || /debian-archive/ {
             if ($0 !~ /(^|\n)Enabled:[ \t]*no/) {
                 sub(/Types:[^\n]*/, "Types: deb-src")
                 print
             }
         }' "$file"
done >"$tmp/debian.sources"
for file in "$apt_dir"/sources.list "$apt_dir"/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    sed -n '/^deb[[:space:]].*debian/s/^deb[[:space:]]/deb-src /p' "$file"
done >"$tmp/debian.list"

# A source list is one file: take the format that has entries, one-line entries last.
if [ -s "$tmp/debian.sources" ]; then
    list=$tmp/debian.sources
elif [ -s "$tmp/debian.list" ]; then
    list=$tmp/debian.list
else
    fail "no Debian entry in $apt_dir/sources.list or $apt_dir/sources.list.d; the source package of zydis is needed"
fi

apt() {
    apt-get -qq -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp/cache" -o APT::Get::List-Cleanup=0 \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

echo "Fetching the source package zydis $version through apt, to link the decoder statically."
apt update >"$tmp/log" 2>&1 || {
    cat "$tmp/log" >&2
    fail "apt-get update for source packages failed (see above); is the package mirror reachable?"
}
(cd "$tmp/src" && apt source --download-only "zydis=$version") >"$tmp/log" 2>&1 || {
    cat "$tmp/log" >&2
    fail "apt-get source zydis=$version failed (see above)"
}

tarball=
for file in "$tmp"/src/zydis_*.orig.tar.*; do
    case $file in
    *.asc) ;; # its signature
    *) tarball=$file ;;
    esac
done
[ -f "$tarball" ] || fail "the source package zydis $version has no original archive"
mkdir "$tmp/zydis"
tar -xf "$tarball" -C "$tmp/zydis" --strip-components=1 || fail "cannot unpack $tarball"

cc=${CC:-cc}
for source in "$tmp"/zydis/src/*.c; do
    case ${source##*/} in
    Formatter*.c | Encoder*.c | Disassembler.c) continue ;;
    esac
    # shellcheck disable=SC2086 # flags are words
    $cc $flags -I "$tmp/zydis/include" -I "$tmp/zydis/src" -c "$source" \
        -o "$tmp/$(basename "$source" .c).o" || fail "$cc cannot compile ${source##*/} of zydis $version"
done

# Into place by renaming, the stamp last: a broken-off run leaves nothing that looks finished.
mkdir -p "$out"
rm -rf "$out/libzydis.stamp" "$out/include"
ar rcs "$tmp/libzydis.a" "$tmp"/*.o || fail "ar failed"
mkdir "$out/include"
cp -R "$tmp/zydis/include/." "$out/include/"
cp "$tmp/libzydis.a" "$out/libzydis.a.new"
mv "$out/libzydis.a.new" "$out/libzydis.a"
printf '%s' "$stamp" >"$out/libzydis.stamp"
