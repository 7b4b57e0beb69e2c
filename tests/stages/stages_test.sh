#!/usr/bin/env bash
# scripts/test, in a copy of the repository where what the stages run only says that it ran: which stages run, and what comes
# of one that fails. Open it when a stage is added.
# stages_test.sh CHECKOUT
set -euo pipefail
checkout=$1
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
fail() {
  printf 'stages_test.sh: FAILED: %s\n' "$*" >&2
  exit 1
}

# Each stand-in writes a line to $copy/ran, and fails where the line is one of $failing.
cat >"$copy/stand_in" <<'END'
#!/usr/bin/env bash
line="$(basename "$0") $*"
line=${line% }
line=${line/$STAGES_COPY/.}
printf '%s\n' "$line" >>"$STAGES_COPY/ran"
case $(basename "$0") in port) [[ $* == --list ]] && printf 'one\nother\n' ;; esac
! grep -qxF -e "$line" <<<"$STAGES_FAILING"
END
chmod +x "$copy/stand_in"
mkdir -p "$copy"/{bin,scripts/lib,tests/dist}
cp "$checkout/scripts/test" "$copy/scripts/"
cp "$checkout/scripts/lib/common.sh" "$copy/scripts/lib/"
for script in setup check-layers format check-documents tidy port site release; do cp "$copy/stand_in" "$copy/scripts/$script"; done
for program in cmake ctest python3; do cp "$copy/stand_in" "$copy/bin/$program"; done
cp "$copy/stand_in" "$copy/tests/dist/debian.sh"
echo 'project(sluice VERSION 1.2.3 LANGUAGES C)' >"$copy/CMakeLists.txt"
for script in $(grep -oE '"\$repo_root/scripts/[a-z-]+"' "$checkout/scripts/test" | sort -u | sed 's|.*/||; s|"||'); do
  [[ -x $copy/scripts/$script ]] || fail "scripts/test runs $script, which has no stand-in here"
done

# run STATUS FAILING ARGUMENT...: leaves what was printed in $printed, and what ran in $ran.
run() {
  local wanted=$1 failing=$2 status=0
  shift 2
  : >"$copy/ran"
  printed=$(env PATH="$copy/bin:$PATH" STAGES_COPY="$copy" STAGES_FAILING="$failing" "$copy/scripts/test" "$@" 2>&1) || status=$?
  ran=$(<"$copy/ran")
  [[ $status == "$wanted" ]] || fail "scripts/test $*: status $status where '$failing' fails: $printed"
}
# closing STAGE: what the list at the end says of it.
closing() { sed -n '/ stages in /,$p' <<<"$printed" | awk -v stage="$1" '$1 == stage { print $2 }'; }
stages_of() { "$checkout/scripts/test" --help | sed -n "/^$1/,/^[^ ]/s/^  \([a-z]*\) .*/\1/p"; }
mapfile -t default < <(stages_of 'Stages of a run without')
mapfile -t slow < <(stages_of Slow,)
((${#default[@]} > 3 && ${#slow[@]} > 3)) || fail "--help names no stages: ${default[*]}; ${slow[*]}"

run 0 ''
for stage in "${default[@]}"; do grep -q "^== Stage .*: $stage " <<<"$printed" || fail "stage $stage does not run"; done
[[ $printed == *"all ${#default[@]} stages passed"* ]] || fail "$printed"
! grep -qE '^(port|site|release) ' <<<"$ran" || fail "a slow stage runs without being asked for: $ran"

run 1 check-layers
grep -qx check-layers <<<"$ran" || fail "the layers are not checked"
[[ $ran != *tidy* && $ran != *ctest* ]] || fail "a run without arguments goes on after a failure: $ran"

run 0 '' --all
for stage in "${default[@]}" "${slow[@]}"; do [[ $(closing "$stage") == passed ]] || fail "$stage: '$(closing "$stage")'"; done
[[ $(grep -c 'passed  *[0-9]*m[0-9]*s$' <<<"$printed") == $((${#default[@]} + ${#slow[@]})) ]] || fail "not each stage has its time: $printed"
for line in 'port other' site 'release 1.2.3' 'debian.sh ./build/dist'; do
  grep -qxF "$line" <<<"$ran" || fail "--all does not run '$line': $ran"
done

# One that fails at its first step, one at its last, one in the middle of a loop: all others run, each to its end.
run 1 $'check-layers\nport one\ndebian.sh ./build/dist' --all
for stage in "${default[@]}" "${slow[@]}"; do
  case $stage in
    style | port | dist) wanted=failed ;;
    *) wanted=passed ;;
  esac
  [[ $(closing "$stage") == "$wanted" ]] || fail "$stage is '$(closing "$stage")' and not '$wanted': $printed"
done
grep -qx 'port other' <<<"$ran" || fail "a port that fails keeps the next from running: $ran"
! grep -qx 'format --check' <<<"$ran" || fail "a stage goes on after what failed in it: $ran"
[[ $printed == *"3 of $((${#default[@]} + ${#slow[@]})) stages failed: style port dist"* ]] || fail "$printed"

# What a stage does not look at the status of stops it, too.
sed -i 's|^stage_tidy() .*|stage_tidy() { false; "$repo_root/scripts/tidy"; }|' "$copy/scripts/test"
run 1 '' --all
[[ $(closing tidy) == failed && $(closing release) == passed ]] || fail "a command that fails in a stage: $printed"
! grep -qx tidy <<<"$ran" || fail "a stage goes on after a command that failed"

run 1 '' --all style
[[ $printed == *"exclude each other"* && -z $ran ]] || fail "--all and a stage: $printed"
run 1 '' nothing
[[ $printed == *"unknown stage 'nothing'"* && -z $ran ]] || fail "an unknown stage: $printed"
echo "stages_test.sh: passed"
