#!/usr/bin/env bash
# Makes the repository that the measured git works on: 1,500 commits on three branches, each of which changes some of
# 600 files. Open it to change its size or shape. Its objects have the same names on every machine.
set -euo pipefail

if (($# != 1)); then
  echo "Usage: prepare.sh FOLDER" >&2
  exit 2
fi
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
git init -q --bare --initial-branch=main "$1"

# Prints the commits in the format of git fast-import. The numbers are drawn by a generator whose products are exact in
# the floating-point numbers of awk.
LC_ALL=C awk '
function below(limit) {
  state = (state * 16807) % 2147483647
  return int(state / 2147483647 * limit)
}
function line(file, number) {
  return sprintf("line %d of file %d: %s %s %d\n", number, file, word[below(12)], word[below(12)], below(1000))
}
function write_file(file,   text, i) {
  text = ""
  for (i = 0; i < lines[file]; ++i) text = text content[file, i]
  printf "M 100644 inline part%02d/%s/file%03d.txt\ndata %d\n%s\n", file % 23, word[file % 7], file, length(text), text
}
BEGIN {
  state = 42
  split("stream buffer window packet signal filter driver module thread socket record cursor", names, " ")
  for (i in names) word[i - 1] = names[i]
  for (file = 0; file < 600; ++file) {
    lines[file] = 20 + below(120)
    for (i = 0; i < lines[file]; ++i) content[file, i] = line(file, i)
  }
  for (commit = 0; commit < 1500; ++commit) {
    branch = commit == 0 ? "main" : commit % 9 == 0 ? "stable" : commit % 4 == 0 ? "topic" : "main"
    message = sprintf("Change %d: the %s of the %s\n", commit, word[below(12)], word[below(12)])
    printf "commit refs/heads/%s\nmark :%d\n", branch, commit + 1
    printf "committer Author %d <author%d@example.org> %d +0000\n", commit % 7, commit % 7, 1600000000 + commit * 3600
    printf "data %d\n%s", length(message), message
    if (commit > 0 && !(branch in tip)) printf "from :%d\n", tip["main"]
    if (branch == "main" && commit % 50 == 1 && "topic" in tip) printf "merge :%d\n", tip["topic"]
    tip[branch] = commit + 1
    count = commit == 0 ? 600 : 1 + below(5)
    for (i = 0; i < count; ++i) {
      file = commit == 0 ? i : below(600)
      if (commit > 0) {
        at = below(lines[file])
        content[file, at] = line(file, at)
        content[file, lines[file]] = line(file, lines[file])
        ++lines[file]
      }
      write_file(file)
    }
    printf "\n"
  }
}' | git -C "$1" fast-import --quiet
