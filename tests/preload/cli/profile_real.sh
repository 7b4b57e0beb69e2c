#!/usr/bin/env bash
# `sluice profile` with the library itself: of a program whose allocations are known, every one is told, at its site.
. "$(dirname "$0")/testing.sh"
"$SLUICE" options | grep -q '^SLUICE_PROFILE_RATE ' || skip 'the library writes no profiles'
cat >subject.c <<'END_OF_PROGRAM'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
void* kept[1000];
__attribute__((noinline)) void* xmalloc(size_t size) {
  void* block = malloc(size);
  if (block == NULL) abort();
  return memset(block, 1, size);
}
__attribute__((noinline)) void keep(void) {
  for (int i = 0; i < 1000; ++i) kept[i] = xmalloc(1000);
}
__attribute__((noinline)) void give_up(void) {
  for (int i = 0; i < 500; ++i) free(kept[i]), kept[i] = NULL;
}
__attribute__((noinline)) void* churn(void* argument) {
  for (int i = 0; i < 5000; ++i) free(xmalloc(64));
  return argument;
}
__attribute__((noinline)) void large(void) {
  free(xmalloc(8 << 20));
}
int main(void) {
  pthread_t thread;
  keep();
  large();
  give_up();
  if (pthread_create(&thread, NULL, churn, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}
END_OF_PROGRAM
"$CC" -g -O1 -pthread -o subject subject.c || fail 'cannot compile the subject'

# site ORDER FUNCTION: the row of a site, with single blanks.
site() {
  run "$SLUICE" profile --rate 1 --sort "$1" --pprof out.pb.gz --text -- ./subject
  expect_status 0
  row=$(grep -F "  $2  subject.c:" <<<"$errors" | tr -s ' ')
  [ -n "$row" ] || fail "$last: no site $2: $errors"
}
site inuse keep
[[ $row == *' 0 % 488 KiB 500 977 KiB 977 KiB 0.0 % keep subject.c:11'* ]] || fail "keep: $row"
expect_in errors 'via xmalloc'
expect_in errors 'all figures are exact'
site alloc churn
[[ $row == *' 0 % 0 B 0 0 B 313 KiB 100.0 % churn subject.c:17'* ]] || fail "churn: $row"
site peak large
[[ $row == *' 0 % 0 B 0 8.00 MiB 8.00 MiB 100.0 % large subject.c:21'* ]] || fail "large: $row"

# The same at a distance: what the process has written, read later.
SLUICE_PROFILE=profile.%p SLUICE_PROFILE_RATE=1 "$SLUICE" run -- ./subject
run "$SLUICE" profile profile.* --sort alloc
expect_status 0
expect_in output 'churn  subject.c:17'
run "$SLUICE" profile --diff out.pb.gz profile.*
expect_status 0
expect_in output 'no site differs'

# By samples: what is large is never missed.
run "$SLUICE" profile --sort peak -- ./subject
expect_status 0
expect_in errors 'large  subject.c:21'
expect_in errors 'one for each 512 KiB'

# Children, by name.
run "$SLUICE" profile --program subject --sort alloc -- sh -c './subject; ./subject; exit 4'
expect_status 4
expect_in errors 'large  subject.c:21'
expect_in errors '16.0 MiB'
finish
