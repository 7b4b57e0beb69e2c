#!/usr/bin/env bash
# The archive of sources, unpacked elsewhere and without git, makes the same bytes: another folder, umask, locale and time
# zone, and a compiler without a cache.
source "$(dirname "$0")/testing.sh"
time=$(tar -tvzf "$files/sluice-$version.tar.gz" --full-time --utc | sed -n '1s/.* \([0-9-]* [0-9:]*\) sluice-.*/\1/p')
tar -xzf "$files/sluice-$version.tar.gz" -C "$workspace"
mv "$workspace/sluice-$version" "$workspace/another"
kinds=()
for kind in ${KINDS:-}; do kinds+=(--only "$kind"); done
(umask 077 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo CCACHE_DISABLE=1 SOURCE_DATE_EPOCH=$(date -u -d "$time" +%s) \
  "$workspace/another/scripts/release" "${kinds[@]}" --output "$workspace/files" "$version") || fail "scripts/release"
different=0
for file in "$workspace/files"/*; do
  [[ -n ${KINDS:-} && $file == */SHA256SUMS ]] && continue
  cmp "$file" "$files/$(basename "$file")" || different=$((different + 1))
done
((different == 0)) || fail "$different files differ"
[[ -n ${KINDS:-} ]] || [[ $(ls "$workspace/files") == $(ls "$files") ]] || fail "other files were made"
echo "$0: passed: $(ls "$workspace/files" | wc -l) files are the same"
