#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command of this tree on Debian's own kernel: on a virtual machine that qemu emulates, so that neither KVM nor
# another machine is needed. The machine has two processors and nothing but memory; its root file system is a Debian
# with compilers, Python and pytest, made once in build/vm (700 MB). Emulated programs take 10 to 20 times as long.
# Needs root and the packages of `install-deps.sh build vm`. Exit status: the command's.
#
# usage: scripts/test-vm.sh [COMMAND...]     default: five minutes of the hunt
# environment: VM_MINUTES (60): gives up after so long; VM_KERNEL: package of the kernel; VM_CPU (max): the processor, one
# of `qemu-system-x86_64 -cpu help`
set -eu
cd "$(dirname "$0")/.."
kernel=${VM_KERNEL:-linux-image-cloud-amd64}
minutes=${VM_MINUTES:-60}
[ $# -gt 0 ] || set -- /usr/bin/python3 tests/hunt/hunt.py --seconds 300 --no-minimise
[ "$(id -u)" -eq 0 ] || { echo "test-vm.sh: run it as root: debootstrap needs that" >&2; exit 2; }
for need in debootstrap qemu-system-x86_64 cpio; do
    command -v $need >/dev/null || { echo "test-vm.sh: $need is missing: scripts/install-deps.sh vm" >&2; exit 2; }
done
[ -x build/src/cli/cachegram ] || { echo "test-vm.sh: build/src/cli/cachegram is missing: make build" >&2; exit 2; }

vm=$PWD/build/vm
root=$vm/root
mkdir -p "$vm"
if ! ls "$vm"/kernel/boot/vmlinuz-* >/dev/null 2>&1; then
    package=$(apt-cache depends "$kernel" | awk '/Depends: linux-image/ { print $2; exit }')
    (cd "$vm" && apt-get -qq -o APT::Sandbox::User=root download "${package:-$kernel}" &&
        dpkg-deb -x "${package:-$kernel}"_*.deb kernel)
fi
if [ ! -e "$root/made" ]; then
    rm -rf "$root"
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)
    debootstrap --variant=minbase --include="gcc,g++,libc6-dev,python3,python3-pytest,sqlite3,libdw1,libsqlite3-0,\
libhwloc15,libpfm4,libzstd1,libzydis4.0,libudev1,bzip2,xz-utils,perl,gawk,procps,kmod" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "$mirror" >"$vm/debootstrap.log" ||
        { tail -3 "$vm/debootstrap.log" >&2; exit 1; }
    rm -rf "$root"/var/cache/apt "$root"/usr/share/{doc,man,locale}
    touch "$root/made"
fi

# This tree with what is built of it.
rm -rf "$root/cachegram"
mkdir -p "$root/cachegram/build"
git ls-files -z | xargs -0 cp --parents -t "$root/cachegram"
cp -r --parents build/src/cli/cachegram build/src/agent/*.so "$root/cachegram/"
printf '%q ' "$@" >"$root/command"
cat >"$root/init" <<'EOF'
#!/bin/bash
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
cd /cachegram
echo "Linux $(uname -r)"
bash /command
echo "test-vm: status $?"
echo o >/proc/sysrq-trigger
sleep 60
EOF
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$vm/root.cpio"

log=$vm/log
timeout "${minutes}m" qemu-system-x86_64 -accel tcg,thread=multi -cpu "${VM_CPU:-max}" -m 4096 -smp 2 -nographic -no-reboot \
    -kernel "$vm"/kernel/boot/vmlinuz-* -initrd "$vm/root.cpio" -append "console=ttyS0 quiet panic=-1" </dev/null |
    sed -u 's/\r$//' | tee "$log" | sed -un '/Linux [0-9]/,$p'
status=$(sed -n 's/^test-vm: status //p' "$log")
[ -n "$status" ] || { echo "test-vm.sh: the machine did not end within $minutes minutes, or died: $log" >&2; exit 1; }
exit "$status"
