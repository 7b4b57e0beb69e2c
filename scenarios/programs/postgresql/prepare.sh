#!/usr/bin/env bash
# Makes a database for the measured server, with a server of its own that it ends again. Open it to change the tables of
# pgbench; tables.sql has the others.
set -euo pipefail

if (($# != 3)); then
  echo "Usage: prepare.sh FOLDER-OF-THIS-SCRIPT USER FOLDER" >&2
  exit 2
fi
data=$1 owner=$2 folder=$3
source "$data/settings.sh"
[[ $EUID != 0 ]] || chown "$owner" "$folder"
cd "$folder"
(become "$owner" initdb -D "$folder/data" -U bench -A trust -E UTF8 --locale=C --no-sync > initdb.log) || {
  echo "initdb could not make a database in $folder" >&2
  exit 1
}

serve "$owner" "$folder" > server.log 2>&1 &
server=$!
end_server() {
  kill -INT "$server" 2> /dev/null || true
  wait "$server" || true
}
trap end_server EXIT
for ((i = 0; i < 600; ++i)); do
  pg_isready -q -h "$folder" -U bench -d postgres && break
  kill -0 "$server" 2> /dev/null || break
  sleep 0.05
done
if ! pg_isready -q -h "$folder" -U bench -d postgres; then
  echo "the server did not start: $(grep -m 1 FATAL server.log || tail -n 1 server.log)" >&2
  exit 1
fi
if ! pgbench -h "$folder" -U bench -i -q -s 1 postgres > pgbench.log 2>&1; then
  echo "pgbench could not make its tables: $(tail -n 1 pgbench.log)" >&2
  exit 1
fi
psql -h "$folder" -U bench -X -q -v ON_ERROR_STOP=1 -f "$data/tables.sql" postgres > /dev/null
