# Loads the measured server, by way of sh: load.sh SOCKET. Bursts of keys that expire, each followed by a rest. Prints how
# many requests it answered per second, the rests not counted. Open it to change the bursts.
set -eu
socket=$1
requests=25000

burst() {
  for bytes in 64 500 3000; do
    value=$(head -c "$bytes" /dev/zero | tr '\0' v)
    redis-benchmark -s "$socket" -n "$requests" -r 1000000 -P 16 -c 10 -q set "$bytes:__rand_int__" "$value" px 800 |
      tr '\r' '\n' | sed -n 's/.*: \([0-9.]*\) requests per second.*/\1/p' | tail -n 1
  done
}

for _ in 1 2 3; do
  burst
  sleep 1.5
done | awk -v requests="$requests" '{ done += requests; seconds += requests / $1 }
  END { if (NR == 9) printf "%.1f requests per second\n", done / seconds }'
