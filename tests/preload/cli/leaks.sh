#!/usr/bin/env bash
# `sluice leaks` with the library itself: of a program whose leaks are known, what it reports, suppresses, and ends with.
. "$(dirname "$0")/testing.sh"
cat >subject.c <<'END_OF_PROGRAM'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct list { struct list* next; };
static volatile unsigned long hidden;
static struct list* volatile kept;
__attribute__((noinline)) void* xmalloc(size_t size) {
  void* block = malloc(size);
  if (block == NULL) abort();
  return memset(block, 0, size);
}
__attribute__((noinline)) struct list* make_head(void) { return xmalloc(100); }
__attribute__((noinline)) struct list* make_rest(void) { return xmalloc(100); }
__attribute__((noinline)) void lose_list(void) {
  struct list* first = make_head();
  first->next = make_rest();
  first->next->next = make_rest();
  hidden = ~(unsigned long)first;
}
__attribute__((noinline)) void lose_text(void) { hidden = ~(unsigned long)strcpy(xmalloc(6), "words"); }
__attribute__((noinline)) void keep(void) { kept = make_head(); }
__attribute__((noinline)) void scrub(void) {
  volatile char rest[8192];
  for (int i = 0; i < 8192; ++i) rest[i] = 0;
}
int main(int argc, char** argv) {
  keep();
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "list") == 0) lose_list();
    if (strcmp(argv[i], "text") == 0) lose_text();
    if (strcmp(argv[i], "signal") == 0) raise(SIGUSR2);
    if (strcmp(argv[i], "fail") == 0) { scrub(); return 3; }
    if (strcmp(argv[i], "abort") == 0) abort();
  }
  scrub();
  return 0;
}
END_OF_PROGRAM
"$CC" -g -O1 -fno-optimize-sibling-calls -o subject subject.c || fail 'cannot compile the subject'
export TMPDIR=$workspace/tmp
mkdir "$TMPDIR"
leaks() { run "$SLUICE" leaks "$@"; }
lacks() { case "${!1}" in *"$2"*) fail "$last: $1 has '$2': ${!1}" ;; esac; }

# Exactly what is leaked, and through what.
leaks --exact -- ./subject list text text
expect_status 0
expect_output ''
expect_in errors 'leaks of subject, pid '
expect_in errors '  alive          412 B in 6 blocks'
expect_in errors '  leaked         112 B in 3 blocks, to which no pointer is found'
expect_in errors '  indirectly     200 B in 2 blocks, to which only leaked blocks point'
expect_in errors '  reachable      100 B in 1 block'
row() { sed -n "s/  *$1 .*/ $1/p" .errors | tr -s ' '; }
[ "$(row make_head)" = ' 100 B 1 200 B - - make_head' ] || fail "$last: $errors"
[ "$(row make_rest)" = ' - - - 200 B 2 make_rest' ] || fail "$last: $errors"
[ "$(row lose_text)" = ' 12 B 2 - - - lose_text' ] || fail "$last: $errors"
expect_in errors 'via xmalloc'
expect_in errors 'called by lose_list, main'
lacks errors _start
leaks --exact --top 1 --reachable -- ./subject text
expect_in errors 'top 1 of 2 sites'
leaks --exact --reachable -- ./subject
expect_in errors 'reachable  site'
expect_in errors '100 B  make_head'
leaks --exact -- ./subject
expect_in errors 'nothing is leaked'

# The exit status tells of leaks, but the program's own failure comes first.
leaks --exact --error-exitcode 23 -- ./subject text
expect_status 23
leaks --exact --error-exitcode 23 -- ./subject
expect_status 0
leaks --exact --error-exitcode 23 -- ./subject text fail
expect_status 3
expect_in errors '6 B in 1 block, to which no pointer is found'
leaks --exact --error-exitcode 23 -- sh -c 'kill -KILL $$'
[ "$status" -eq 137 ] || fail "$last: $status"
expect_in errors 'leaks: the program wrote no profile: it was ended by signal 9'
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"

# Suppressions by function, file and object; what hangs on a suppressed leak goes with it.
suppressed() { # PATTERN: is what is leaked of list and text, then
  printf '# of the test\n\n leak:%s \n' "$1" >suppressions
  leaks --exact --suppressions suppressions --error-exitcode 9 -- ./subject list text
}
for pattern in make_head lose_list '^lose_li*' 'e_h*d$'; do
  suppressed "$pattern"
  expect_status 9
  expect_in errors 'suppressed     300 B in 3 blocks'
  expect_in errors 'leaked         6 B in 1 block'
done
suppressed make_rest
expect_in errors 'suppressed     200 B in 2 blocks'
expect_in errors 'leaked         106 B in 2 blocks'
for pattern in subject.c '*/subject$' main; do
  suppressed "$pattern"
  expect_status 0
  expect_in errors 'suppressed     306 B in 4 blocks'
  expect_in errors 'nothing is leaked'
done
suppressed 'ose_li$'
expect_in errors 'leaked         106 B in 2 blocks'

# JSON.
leaks --exact --json leaks.json -- ./subject list text
python3 - <<'END_OF_SCRIPT' || fail 'the JSON is another'
import json
report = json.load(open("leaks.json"))
assert report["schema"] == "sluice-leaks 1" and report["exact"] and report["reachability"] == "known", report
assert report["direct"] == {"blocks": 2, "bytes": 106} and report["indirect"] == {"blocks": 2, "bytes": 200}, report
head = report["sites"][0]
assert head["site"] == "make_head" and head["held"] == {"blocks": 2, "bytes": 200}, head
assert [f["function"] for f in head["stack"][:4]] == ["xmalloc", "make_head", "lose_list", "main"], head
assert head["stack"][1]["file"].endswith("/subject.c") and head["stack"][1]["line"] > 0, head
END_OF_SCRIPT

# Samples: what is alive, with the error of each figure, and no word of leaks.
leaks --rate 50 -- ./subject list list list list
expect_status 0
expect_in errors 'leaked         not known; --exact finds out'
expect_in errors 'estimates from samples, one for each 50 B: ±'
expect_in errors '±  blocks  site'

# Between two profiles.
export LD_PRELOAD=$("$SLUICE" run -- printenv LD_PRELOAD)
SLUICE_PROFILE=p.pb SLUICE_PROFILE_RATE=1 SLUICE_PROFILE_LEAKS=1 SLUICE_PROFILE_SIGNAL=USR2 \
  ./subject text signal list signal text text || fail 'the subject'
SLUICE_PROFILE=other.pb SLUICE_PROFILE_RATE=1 ./subject || fail 'the subject'
SLUICE_PROFILE=none.pb SLUICE_PROFILE_RATE=1 SLUICE_PROFILE_LEAKS=1 ./subject || fail 'the subject'
unset LD_PRELOAD
leaks p.pb.1 p.pb.2
expect_status 0
expect_in output 'blocks born after p.pb.1'
expect_in output '  alive          300 B in 3 blocks'
lacks output lose_text
leaks p.pb.2 p.pb --error-exitcode 5
expect_status 5
expect_in output '  leaked         12 B in 2 blocks'
lacks output lose_list
leaks p.pb
expect_in output '  leaked         118 B in 4 blocks'
leaks p.pb.1 --error-exitcode 5
expect_status 1
expect_in errors 'it is not known what is leaked'
leaks none.pb --error-exitcode 5
expect_status 0
# Where the tables were full, what is leaked may not be among what is known.
sed 's/sluice.dropped=0/sluice.dropped=7/' none.pb >full.pb
leaks full.pb --error-exitcode 5
expect_status 1
expect_in errors 'more was allocated than is known of'
leaks p.pb --json -
[ "$(head -c 1 .output)" = '{' ] || fail "$last: $output"

# What it refuses.
refuses() { # STATUS TEXT ARGUMENTS...
  local code=$1 text=$2
  shift 2
  leaks "$@"
  expect_one_line_error "$code" "$text"
}
refuses 2 'p.pb.2 was not written before p.pb.1' p.pb.2 p.pb.1
refuses 2 'are not of one process' p.pb.1 other.pb
refuses 2 'which program, or which file?'
refuses 2 'which program?' --
refuses 2 'either a program is run or files are read' p.pb -- true
refuses 2 'are for a program that is run' p.pb --exact
refuses 2 'needs --exact' --error-exitcode 5 -- true
refuses 2 '--error-exitcode' --exact --error-exitcode 0 -- true
refuses 2 'excludes' --exact --rate 5 -- true
refuses 2 'nosuch: cannot be read' --exact --suppressions nosuch -- touch ran
refuses 2 '.: cannot be read: Is a directory' --exact --suppressions . -- touch ran
printf 'leak:x\nrace:y\n' >suppressions
refuses 2 "suppressions:2: 'race:y' is no suppression" --exact --suppressions suppressions -- touch ran
refuses 2 'nosuch/x.json cannot be written' --exact --json nosuch/x.json -- touch ran
refuses 2 "did you mean '--exact'?" --exect -- true
[ ! -e ran ] || fail 'the program ran'
finish
