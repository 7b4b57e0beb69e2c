# The release build's libraries on Debian's kernels, in a machine by qemu-system: what is settled for a whole machine and so can
# be tested on none that others use (tests/ports/kernels_guest.sh), and memory nodes (tests/ports/nodes_guest.sh). The processor is
# emulated too, so that it needs no /dev/kvm. Its root is Debian 12's packages in memory. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/debian.sh"

root=$build/root
releases=(bullseye bookworm trixie)
packages=(bash busybox-static coreutils gawk grep sed python3 libstdc++6)

# unpack_into FOLDER
unpack_into() {
  local deb
  rm -rf "$1"
  mkdir -p "$1"
  for deb in "$build"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$1" || fail "$deb cannot be unpacked"; done
  rm -rf "$build/apt"
}

fetch_machines() {
  local release
  for release in "${releases[@]}"; do
    [[ -f $build/vmlinuz-$release ]] && continue
    from_debian "$release" deb linux-image-amd64
    unpack_into "$build/kernel"
    mv "$build"/kernel/boot/vmlinuz-* "$build/vmlinuz-$release"
    rm -rf "$build/kernel"
  done
  [[ $(cat "$build/fetched" 2>/dev/null) == "${packages[*]}" ]] && return
  from_debian bookworm deb "${packages[@]}"
  unpack_into "$root"
  rm -rf "$root"/usr/share "$root"/usr/lib/x86_64-linux-gnu/{gconv,perl-base} "$root"/usr/lib/python3*/{test,idlelib,lib2to3,pydoc_data}
  printf '%s' "${packages[*]}" >"$build/fetched"
}

install_qemu() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  say "installing qemu-system-x86"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-system-x86 seabios </dev/null ||
    fail "qemu-system-x86 could not be installed"
}

build_port() {
  [[ $(uname -m) == x86_64 ]] || fail "for x86-64 alone"
  command -v qemu-system-x86_64 >/dev/null || install_qemu
  configure release -DSLUICE_TESTS=ON
  build release sluice_preload sluice_secure_preload preload_tests
  built=$repo_root/build/release/lib/libsluice.so
}

# make_root: the image that the kernel begins with.
make_root() {
  local folder=$root/sluice
  rm -rf "$folder"
  mkdir -p "$folder" "$root"/{proc,sys,dev,tmp}
  cp -L "$built" "${built%.so}-secure.so" "$folder/"
  cp contract_test allocating_library.so limited "$folder/"
  local program
  for program in huge_pages nodes; do
    gcc -O1 -fno-builtin -pthread -Wall -Wextra -Werror "$repo_root/tests/ports/$program.c" -o "$folder/$program" || fail "$program.c does not compile"
  done
  cp "$repo_root"/tests/preload/{preload_process.py,faults/limits_test.py,faults/overcommit.sh} "$repo_root"/tests/ports/{kernels,nodes}_guest.sh "$folder/"
  ln -sf bash "$root/bin/sh"
  ln -sf gawk "$root/usr/bin/awk"
  cat >"$root/init" <<'END'
#!/bin/busybox sh
export PATH=/usr/bin:/bin HOME=/tmp
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmpfs /tmp
ln -s /proc/self/fd /dev/fd
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
guest=kernels
grep -q memory_nodes /proc/cmdline && guest=nodes
bash /sluice/${guest}_guest.sh /sluice 2>&1
busybox poweroff -f
END
  chmod +x "$root/init"
  (cd "$root" && find . | bin/busybox cpio -o -H newc) >"$build/root.cpio" 2>"$build/cpio.log" || { cat "$build/cpio.log" && fail "no image of the root"; }
}

# boot RELEASE LOG PARAMETER [ARGUMENT...]: a machine of 2 GiB with two processors, the kernel's further parameter, and what qemu is told beside.
boot() {
  local release=$1 log=$2 parameter=$3
  shift 3
  timeout 1200 qemu-system-x86_64 -machine accel=tcg -cpu max -m 2048 -smp 2 "$@" -nodefaults -nographic -no-reboot -serial stdio \
    -kernel "$build/vmlinuz-$release" -initrd "$build/root.cpio" -append "console=ttyS0 quiet panic=-1 $parameter" </dev/null >"$log" 2>&1 || true
  sed -i -e 's/\r//g' -e 's/.*kernel \([0-9]\)/kernel \1/' "$log" # after what the firmware writes
  sed -n '/^kernel /,$p' "$log"
}

test_port() {
  fetch_machines
  (cd "$repo_root/build/release/bin/tests" && make_root)
  local release log failed=() node nodes=()
  for node in 0 1; do nodes+=(-object "memory-backend-ram,id=m$node,size=1024M" -numa "node,nodeid=$node,cpus=$node,memdev=m$node"); done
  for release in "${releases[@]}"; do
    log=$build/$release.log
    say "starting the kernel of Debian's $release"
    boot "$release" "$log" ""
    grep -qx 'kernels_guest.sh: passed' "$log" || failed+=("$release")
    log=$build/$release-nodes.log
    say "starting it on two memory nodes"
    boot "$release" "$log" memory_nodes "${nodes[@]}"
    grep -qx 'nodes_guest.sh: passed' "$log" || failed+=("$release with two memory nodes")
  done
  ((${#failed[@]} == 0)) || fail "failed on the kernels of ${failed[*]} ($build/*.log)"
  where="on kernels of Debian's ${releases[*]}, on an emulated processor"
}
