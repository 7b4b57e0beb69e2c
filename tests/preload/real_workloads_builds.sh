# Workloads of real_program.sh: a large repository of git, and builds of this project. Sourced by real_workloads.sh, which
# says what the functions are; open it when git or a compiler fails under the preload.

# A repository of so many blobs of 3 to 9 KB, hard to compress; each commit changes a hundred files of a thousand.
# The numbers are drawn by a generator whose products are exact in the floating-point numbers of awk.
make_repository() {
  git init -q --bare --initial-branch=main repository
  awk -v blobs="$1" '
    function below(limit) { state = (state * 16807) % 2147483647; return int(state / 2147483647 * limit) }
    BEGIN {
      state = 7
      for (i = 0; i < 4000; ++i) line[i] = sprintf("%08x %08x %d\n", below(2147483647), below(2147483647), below(1000000))
      for (blob = 0; blob < blobs; ++blob) {
        if (blob % 100 == 0) {
          message = "change " blob "\n"
          printf "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata %d\n%s", 1600000000 + blob, length(message), message
        }
        text = ""
        for (i = 100 + below(230); i > 0; --i) text = text line[below(4000)]
        printf "M 100644 inline folder%d/file%d\ndata %d\n%s\n", blob % 1000 % 31, blob % 1000, length(text), text
      }
    }' | git -C repository -c core.compression=1 fast-import --quiet
}

git_work() {
  mkdir unchecked && cd unchecked
  export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
  cp -r "$INPUT/repository" .
  local git=(git -C repository -c core.compression=1 -c pack.threads=2 -c "pack.window=$1" -c gc.auto=0)
  "${git[@]}" repack -q -a -d -f --threads=2
  git -C repository fsck --full --strict --no-dangling --no-progress
  git -C repository rev-list --objects --all | sort | sha256sum
  git -c core.compression=1 clone -q --no-local repository copy
  git -C copy count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
  (cd copy && find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  "${git[@]}" gc -q --prune=now
  git -C repository cat-file --batch-all-objects --batch-check | sha256sum
  git -C repository multi-pack-index write --no-progress
  git -C repository log --oneline --stat main | sha256sum
}

programs_git_large() { echo git; }
prepare_git_large() { make_repository 5000; }
workload_git_large() { git_work 4; }

# As large as repositories of people who complain; takes a minute.
programs_git_whole() { echo git; }
prepare_git_whole() { make_repository 20000; }
workload_git_whole() { git_work 10; }

# build_project BUILD_TYPE TARGET...: object files and libraries, all of them the same under any allocator.
build_project() {
  mkdir unchecked && cd unchecked
  cmake -S "$(dirname "${BASH_SOURCE[0]}")/../.." -B build -G Ninja -DCMAKE_BUILD_TYPE="$1" -DSLUICE_TESTS=OFF \
    -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF > log || cat log
  ninja -C build -j2 "${@:2}" > log || cat log
  find build -name '*.o' -o -name '*.so' -o -name '*.a' | sort | xargs sha256sum
}

programs_build() { echo cmake ninja gcc g++; }
seen_build() { echo cmake ninja cc1plus as; }
workload_build() { build_project Debug sluice_os sluice_preload_objects; }

# All of the library, as users get it; takes minutes.
programs_build_whole() { programs_build; }
seen_build_whole() { echo cmake ninja cc1plus as ld ar; }
workload_build_whole() { build_project Release sluice_preload sluice_static; }
