#!/usr/bin/env bash
# Programs that are linked with libsluice.a, whose own copy serves them in place of any preload: the command works by
# that copy and says so, or refuses.
. "$(dirname "$0")/testing.sh"
cat >program.c <<'END_OF_PROGRAM'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* volatile block;
__attribute__((noinline)) void lose_blocks(void) {
  for (int i = 0; i < 10; ++i) block = malloc(1000);
  block = NULL;
}
int main(void) {
  lose_blocks();
  for (int i = 0; i < 10000; ++i) {
    block = malloc(1000);
    free(block);
  }
  volatile char rest[8192];
  memset((char*)rest, 0, sizeof rest);
  fputs("was run\n", stdout);
  return 0;
}
END_OF_PROGRAM
"$CC" -g -O1 -fno-builtin -fno-optimize-sibling-calls -o program program.c "$STATIC_LIBRARY" -pthread ||
  fail 'cannot link the program'
two_copies='sluice: two copies of Sluice are in this process: that of the program itself serves and reports, that of '

# Its own copy reports, as without the preload; one line says whose report it is.
SLUICE_STATS=json:alone.json ./program >alone.out
run "$SLUICE" run --stats=json:dump.json -- ./program
expect_status 0
expect_output 'was run'
[[ $errors == "$two_copies"*' stands aside' ]] || fail "$last: $errors"
mallocs() { grep -m 1 '"mallocs"' "$1"; }
[ -n "$(mallocs alone.json)" ] && [ "$(mallocs dump.json)" = "$(mallocs alone.json)" ] || fail "$(mallocs dump.json)"

run "$SLUICE" leaks --exact --error-exitcode 9 -- ./program
expect_status 9
expect_in errors "$two_copies"
expect_in errors '9.77 KiB in 10 blocks, to which no pointer is found'
expect_in errors ' lose_blocks '
case $errors in *sluice::*) fail "$last: shows functions of the allocator: $errors" ;; esac

run "$SLUICE" profile --rate 1 -- ./program
expect_status 0
expect_in errors "$two_copies"
expect_in errors '10,01'
expect_in errors ' lose_blocks '

# Where nothing is asked for, the command says it instead.
run "$SLUICE" run -- ./program
expect_status 0
expect_output 'was run'
[[ $errors == 'sluice: ./program is linked with Sluice '*', which serves it; the preload stands aside' ]] ||
  fail "$last: $errors"
printf '#!%s/program\n' "$workspace" >script
chmod +x script
run "$SLUICE" run -- ./script
expect_output 'was run'
expect_in errors "/program, the interpreter of ./script, is linked with Sluice "

# Another library than that copy cannot serve.
library=$("$SLUICE" run -- printenv LD_PRELOAD)
for choice in --secure --lib="$library"; do
  run "$SLUICE" run "$choice" -- ./program
  expect_one_line_error 125 './program is linked with Sluice '
  expect_in errors ', which serves it: the preload cannot work'
done
run "$SLUICE" run --force --secure -- ./program
expect_status 0
expect_output 'was run'
[[ $errors == "$two_copies"*' stands aside' ]] || fail "$last: $errors"

# A program with another malloc: nothing is known of it, and --error-exitcode does not say that all is well.
cat >other.c <<'END_OF_PROGRAM'
#include <stddef.h>
static char room[1 << 20], *next = room;
void* malloc(size_t size) { next += 16 + (size + 15) / 16 * 16; return next; }
void free(void* block) { (void)block; }
int main(void) { return malloc(1000) == NULL; }
END_OF_PROGRAM
"$CC" -O1 -fno-builtin -o other other.c || fail 'cannot link the other program'
run "$SLUICE" leaks --exact --error-exitcode 9 -- ./other
expect_status 1
expect_in errors 'sluice: this program has a malloc of its own, '
expect_in errors 'leaked         unknown: the program has a malloc of its own'
expect_in errors 'it is not known what is leaked'
run "$SLUICE" run -- ./other
[ -z "$errors" ] || fail "$last: $errors"
finish
