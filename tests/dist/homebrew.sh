#!/usr/bin/env bash
# The formula for Homebrew: rubocop finds no fault; its steps build from the archive of sources, and its own test passes; for macOS its
# steps are configured. brew is not at hand: homebrew_stand_in.rb stands for it, with the machine's libraries. Needs npm for Chart.js.
source "$(dirname "$0")/testing.sh"
for command in ruby rubocop; do command -v "$command" >/dev/null || skip "no $command (scripts/setup --release)"; done
unpack_recipes
formula=$recipes/homebrew/sluice.rb
ruby -wc "$formula" >/dev/null || fail "ruby -wc"
# Homebrew's style, as far as rubocop itself has it.
cat >"$workspace/.rubocop.yml" <<'END_OF_STYLE'
AllCops:
  NewCops: enable
Layout/LineLength: {Max: 118, URISchemes: [file, https]}
Layout/SpaceAroundOperators: {Enabled: false}
Lint/AmbiguousOperatorPrecedence: {Enabled: false}
Metrics: {Enabled: false}
Style/AccessModifierDeclarations: {Enabled: false}
Style/Documentation: {Enabled: false}
Style/FrozenStringLiteralComment: {Enabled: false}
Style/StringLiterals: {EnforcedStyle: double_quotes}
END_OF_STYLE
rubocop --config "$workspace/.rubocop.yml" --cache false "$formula" >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail rubocop; }
sed "s/desc \"\(.*\)\"/desc '\1'/" "$formula" >"$workspace/wrong.rb"
! rubocop --config "$workspace/.rubocop.yml" --cache false "$workspace/wrong.rb" >/dev/null || fail "a fault of style is not seen: this test could not fail"

mkdir "$workspace/homebrew"
chart_js "$workspace/homebrew"
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} timeout 1800 ruby "$tests/dist/homebrew_stand_in.rb" "$formula" "$workspace/prefix" "$workspace/homebrew" >"$workspace/log" 2>&1 ||
  { tail -n 40 "$workspace/log" && fail "the formula"; }
says "installed $version" tail -n 1 "$workspace/log"
prefix=$workspace/prefix
[[ -f $prefix/share/man/man1/sluice.1 && -f $prefix/lib/libsluice.a && -f $prefix/lib/libsluice-secure.so ]] || fail "files are missing"
says sluice "$prefix/bin/sluice" bench run pair --with system,sluice --rounds 1 --ops 1000 --quiesce 0.01
grep -qF 'Chart.js v3.9.1' "$prefix/bin/sluice" || fail "reports have no charts"
consumers "$prefix"
# As on macOS: what the formula gives to CMake there makes the command, and what the command is made of is asked for.
ruby "$tests/dist/homebrew_stand_in.rb" "$formula" "$workspace/mac" "$workspace/homebrew" mac >"$workspace/log" 2>&1 || { tail -n 40 "$workspace/log" && fail "the formula on macOS"; }
for needed in cli11 fmt nlohmann-json; do grep -q "^depends on .*\"$needed\"" "$workspace/log" || fail "on macOS the formula does not ask for $needed"; done
! grep -q '^depends on .*\(elfutils\|sqlite\|zlib\)' "$workspace/log" || fail "on macOS the formula asks for what only Linux needs"
grep -qF '"'"$workspace/homebrew/source/build/bin/sluice"'"' "$workspace/homebrew/source/build/preload/cli/cmake_install.cmake" || fail "the command is not installed on macOS"
# Another archive than the one that the formula was written for is refused.
sed 's/^  sha256 "./&0/; s/\(^  sha256 "[0-9a-f]\{64\}\)./\1/' "$formula" >"$workspace/wrong.rb"
! ruby "$tests/dist/homebrew_stand_in.rb" "$workspace/wrong.rb" "$workspace/other" "$workspace/homebrew" >"$workspace/log" 2>&1 || fail "another archive is taken"
says 'the checksum is' cat "$workspace/log"
echo "$0: passed"
