#!/usr/bin/env bash
# The command and the library take the same values: what --option refuses, the library complains of, and what it takes
# the library takes without a word.
. "$(dirname "$0")/testing.sh"

complaint() { # NAME VALUE: what the library says of the value
  env "SLUICE_$1=$2" "$SLUICE" run -- true 2>&1 | grep '^sluice: SLUICE_'
}
agree() { # NAME VALUE...
  local name=$1 value taken accepted
  shift
  for value; do
    "$SLUICE" run --option "$name=$value" -- true >/dev/null 2>&1 && taken=yes || taken=no
    [ -z "$(complaint "$name" "$value")" ] && accepted=yes || accepted=no
    [ "$taken" = "$accepted" ] || fail "$name=$value: taken by the command: $taken, by the library: $accepted"
  done
}
[ -n "$(complaint CACHE nonsense)" ] || fail 'the library does not complain of SLUICE_CACHE=nonsense'
agree STATS '' 0 1 2 text json TEXT xml yes Off maybe text: json: json:dump.json
agree HUGE_PAGES 0 1 on ON Off yes no true False '' 2 maybe ' 1'
agree CACHE 0 1 64K 64k 64KiB 64kb 1M 1025K 2M '' K -1 +1 1.5K 1KK ' 1K' '1K ' 0x10
agree RESERVE 64M 16T 17T 1K 67108864 67108863 18446744073709551615 18446744073709551616 16777216T
agree PURGE_DELAY 0 1000 3600000 3600001 1099511627776 1K '' ten never Never nevermore
agree STATS_SIGNAL USR2 usr1 SIGUSR2 sigterm 12 0 64 65 9 19 SIG NOSUCH '' -1
finish
