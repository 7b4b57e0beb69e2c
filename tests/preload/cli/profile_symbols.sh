#!/usr/bin/env bash
# Names of functions in `sluice profile`: inlined ones with their lines, from a symbol table alone, from a debug file by its
# build id; none from a file that is another one now.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
command -v readelf >/dev/null || skip 'no readelf'
source=$fixtures/profile_subject.c
line_of() { grep -n "// line:$1\$" "$source" | cut -d: -f1; }
stacks() { run "$SLUICE" profile "$1" --collapsed - --sort alloc; }
made() { python3 -B "$fixtures/profile_symbols.py" "$@" >id || fail "no profile of $1"; }

for flags in '-g -O2' '-g -O2 -no-pie' '-g -O2 -gdwarf-4' '-g -O2 -Wl,-z,noseparate-code'; do
  "$CC" $flags -Wl,--build-id -o subject "$source" || fail "cannot compile with $flags"
  made "$PWD/subject" subject.pb
  stacks subject.pb
  expect_output 'outer_function;inlined_function 1000'
  [ -z "$errors" ] || fail "$flags: $errors"
  run "$SLUICE" profile subject.pb
  expect_in output "inlined_function  profile_subject.c:$(line_of inner)"
  # The line of the function around it, as pprof's format has it.
  run "$SLUICE" profile subject.pb --pprof out.pb.gz
  python3 -B - "$(line_of outer)" <<'END_OF_SCRIPT' || fail "$flags: no line of the outer function"
import gzip, sys
data = gzip.open("out.pb.gz").read()
# A line: function 2, and its number.
sys.exit(bytes([0x08, 2, 0x10, int(sys.argv[1])]) not in data)
END_OF_SCRIPT
done

# Without an index of units by address, as clang leaves it.
if command -v objcopy >/dev/null; then
  "$CC" -g -O2 -Wl,--build-id -o indexed "$source" && objcopy --remove-section .debug_aranges indexed subject ||
    fail 'no program without an index'
  made "$PWD/subject" subject.pb
  stacks subject.pb
  expect_output 'outer_function;inlined_function 1000'
  run "$SLUICE" profile subject.pb
  expect_in output "inlined_function  profile_subject.c:$(line_of inner)"
fi

# A function that takes a lambda has no name for the linker: the scopes around it are told all the same.
cat >lambda.cpp <<'END_OF_PROGRAM'
#define main main_of_subject
extern "C" {
#include "profile_subject.c"
}
#undef main
namespace ns {
template <typename Call>
struct Caller {
  Call call;
  __attribute__((always_inline)) void run() { call(); }
};
}
uintptr_t last_of_lambda;
int main() {
  auto lambda = []() __attribute__((always_inline)) { last_of_lambda = here(); };
  ns::Caller<decltype(lambda)>{lambda}.run();
  printf("address %llx\n", (unsigned long long)last_of_lambda);
  FILE* maps = fopen("/proc/self/maps", "r");
  for (int c; (c = fgetc(maps)) != EOF;) putchar(c);
}
END_OF_PROGRAM
if "$CC" -x c++ -g -O2 -Wl,--build-id -I"$fixtures" -o subject lambda.cpp 2>/dev/null; then
  made "$PWD/subject" subject.pb
  stacks subject.pb
  [[ $output =~ ^main\;ns::Caller\<\>::run\;.*operator\(\)\ 1000$ ]] || fail "$last: $output"
fi

# Without debug information: the symbol table; without that: the file and where the function begins in it.
"$CC" -O2 -Wl,--build-id -o subject "$source"
made "$PWD/subject" subject.pb
stacks subject.pb
expect_output 'outer_function 1000'
begin=$(nm subject | sed -n 's/^0*\([0-9a-f]*\) T outer_function$/\1/p')
strip subject
stacks subject.pb
expect_output "subject+0x$begin 1000"

# Another file in the place of the one that ran: one warning, and no wrong name.
"$CC" -g -O2 -Wl,--build-id -o subject "$source"
made "$PWD/subject" subject.pb --wrong
stacks subject.pb
[[ $output =~ ^subject\+0x ]] || fail "$last: names from another file: $output"
expect_in errors "subject: no names of functions: is another one now than the program had"
[ "$(wc -l <.errors)" -eq 1 ] || fail "$last: not one warning: $errors"

# A file that is gone, or none at all.
made "$PWD/subject" subject.pb
rm subject
stacks subject.pb
[[ $output =~ ^subject\+0x ]] || fail "$last: $output"
expect_in errors 'subject: no names of functions: No such file or directory'
echo 'no ELF file' >subject
stacks subject.pb
[[ $output =~ ^subject\+0x ]] || fail "$last: $output"
expect_status 0
mkfifo pipe && mv pipe subject  # nothing waits for it
stacks subject.pb
expect_status 0

# The debug information in a file of its own, found by the link that objcopy makes.
rm subject
"$CC" -g -O2 -Wl,--build-id -o subject "$source"
objcopy --only-keep-debug subject subject.debug
objcopy --strip-all --add-gnu-debuglink=subject.debug subject
made "$PWD/subject" subject.pb
stacks subject.pb
expect_output 'outer_function;inlined_function 1000'

# By the build id, below /usr/lib/debug, also when the program itself is another one now.
if [ "$(id -u)" -eq 0 ]; then
  id=$(<id)
  folder=/usr/lib/debug/.build-id/${id:0:2}
  [ -d "$folder" ] || made_folder=$folder
  mkdir -p "$folder"
  trap 'rm -rf "$workspace" "$folder/${id:2}.debug"; rmdir ${made_folder:-} 2>/dev/null' EXIT
  mv subject.debug "$folder/${id:2}.debug"
  stacks subject.pb
  expect_output 'outer_function;inlined_function 1000'
  rm subject
  stacks subject.pb
  expect_output 'outer_function;inlined_function 1000'
  [ -z "$errors" ] || fail "$last: complains: $errors"
fi

# Damaged ELF files end in names or in none, and never in a signal.
rm -f subject
"$CC" -g -O2 -Wl,--build-id -o original "$source"
cp original subject
made "$PWD/subject" subject.pb
python3 - <<'END_OF_SCRIPT' || fail 'a damaged file ends the command'
import os, random, subprocess, sys
data = open("original", "rb").read()
random.seed(1)
for number in range(150):
    damaged = bytearray(data)
    for _ in range(random.choice((1, 5, 200))):
        damaged[random.choice((random.randrange(len(data)), random.randrange(0x400)))] = random.randrange(256)
    if number % 5 == 0:
        del damaged[random.randrange(len(damaged)):]
    open("subject", "wb").write(damaged)
    done = subprocess.run([os.environ["SLUICE"], "profile", "subject.pb"], capture_output=True, timeout=60)
    if done.returncode != 0:
        print(number, done.returncode, done.stderr)
        os.rename("subject", f"failed.{number}")
        sys.exit(1)
END_OF_SCRIPT
finish
