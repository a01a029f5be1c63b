#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs through apt what is missing of the named groups, and tells what. Does nothing, quickly,
# when nothing is missing. Root is asked for through sudo, only then.
#
# usage: scripts/install-deps.sh GROUP...    groups: build, demo, test, long, bench, papers, overhead, vm
set -eu

build="gcc libc6-dev binutils meson ninja-build pkg-config libzydis-dev libzycore-dev libsqlite3-dev libzstd-dev libhwloc-dev libpfm4-dev libdw-dev libiberty-dev g++"
demo="bzip2"
bench="bzip2 gzip xz-utils zstd sqlite3 perl python3 coreutils mawk bc cpp g++ xsltproc"
test="libcmocka-dev g++ gfortran rustc clang-format python3-pytest python3-pytest-xdist sqlite3 bzip2 xz-utils perl stress-ng valgrind gdb strace musl-tools dwz"
# The page of `cachegram html`: a browser that shows it, and what its script is built with.
test="$test chromium nodejs npm"
# Programs that are profiled.
test="$test gnugo hmmer nodejs openssl p7zip-full pigz povray redis-server redis-tools"
long="clang stress-ng libpython3.11-testsuite guile-3.0 ecl sbcl chicken-bin w3m"
overhead="gnugo x264 flac brotli p7zip-full lua5.4 ruby php-cli tcl nodejs ghostscript redis-server redis-tools make"
papers="gnugo hmmer povray lua5.4 ruby php-cli"
vm="debootstrap qemu-system-x86 cpio"

packages=
for group in "$@"; do
    case $group in
    build) packages="$packages $build" ;;
    demo) packages="$packages $demo" ;;
    test) packages="$packages $test" ;;
    long) packages="$packages $long" ;;
    bench) packages="$packages $bench" ;;
    papers) packages="$packages $papers" ;;
    overhead) packages="$packages $overhead" ;;
    vm) packages="$packages $vm" ;;
    *)
        echo "install-deps.sh: no group '$group'; there are build, demo, test, long, bench, papers, overhead, vm" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps.sh: not a Debian system; make sure that the likes of these are there:$packages" >&2
    exit 0
fi

# One call for all; a package that dpkg never heard of is an error there and missing here.
# shellcheck disable=SC2016,SC2086 # ${...} is for dpkg-query; the lists are words
present=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages 2>/dev/null |
    sed -n 's/ installed$//p') || :
missing=
for package in $packages; do
    if ! printf '%s\n' "$present" | grep -qxF "$package"; then
        case " $missing " in
        *" $package "*) ;;
        *) missing="$missing $package" ;;
        esac
    fi
done
# pkgconf serves as pkg-config where it was chosen instead.
case " $missing " in
*" pkg-config "*)
    if command -v pkg-config >/dev/null 2>&1; then
        missing=$(printf '%s' "$missing" | sed 's/ pkg-config//')
    fi
    ;;
esac
# A node or npm from elsewhere is as good.
for pair in nodejs:node npm:npm; do
    case " $missing " in
    *" ${pair%:*} "*)
        if command -v "${pair#*:}" >/dev/null 2>&1; then
            missing=$(printf '%s' "$missing" | sed "s/ ${pair%:*}\\b//")
        fi
        ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "install-deps.sh: these packages are missing and there is no sudo; as root, run:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi

echo "Installing through apt:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
install_missing() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 \
        install --no-install-recommends $missing </dev/null >"$log" 2>&1
}
# First with the package lists that are there; they may be absent or out of date.
if ! install_missing; then
    if ! $as_root apt-get -qq update </dev/null >"$log" 2>&1 || ! install_missing; then
        cat "$log" >&2
        echo "install-deps.sh: apt could not install:$missing (see above)" >&2
        exit 1
    fi
fi
