# As load.sh, but that each client rests now and then. Prints how many transactions they did per second, the rests not
# counted. Open it to change how often they rest.
set -eu
. "$1/settings.sh"
clients=4
rest=4 # the number of the script that rests, in the order below
rm -f "$2"/transactions.*
pgbench -h "$2" -U bench -n -c "$clients" -j 2 -t "$3" --random-seed=7 -l --log-prefix="$2/transactions" \
  -b select-only@115 -f "$1/report.sql@1" -f "$1/documents.sql@1" -f "$1/paths.sql@1" -f "$1/rest.sql@2" postgres > "$2/pgbench.out"
cat "$2"/transactions.* | awk -v clients="$clients" -v rest="$rest" '$4 != rest { ++done; microseconds += $3 }
  END { printf "%.1f transactions per second\n", done * clients * 1e6 / microseconds }'
