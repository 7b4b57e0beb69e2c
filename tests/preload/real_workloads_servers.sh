# Workloads of real_program.sh: servers under load, and what servers do besides: reload, checkpoint, rewrite, start again.
# Sourced by real_workloads.sh, which says what the functions are; open it when a server fails under the preload.

service_data="$(dirname "${BASH_SOURCE[0]}")/../../scenarios/programs"

# Waits until a command succeeds.
until_ready() {
  local i
  for ((i = 0; i < 1000; ++i)); do
    "$@" > /dev/null 2>&1 && return
    sleep 0.02
  done
  echo "this never succeeds: $*" >&2
  return 1
}

# Ends a server when the workload ends early.
end_at_exit() { trap "kill -INT $1 2> /dev/null || true" EXIT; }

# The server that measurements use, listening at a socket, with two workers.
programs_nginx() { echo nginx setpriv python3; }
seen_nginx() { echo nginx; }
workload_nginx() {
  mkdir unchecked && cd unchecked
  bash "$service_data/nginx/prepare.sh" "$service_data/nginx" "$PWD" 0 "$(id -un)"
  sed -i -e "/keepalive 32/d; s|listen 127.0.0.1:0|listen 'unix:$PWD/page.socket'|; s|worker_processes 1|worker_processes 2|" nginx.conf
  [ "$(id -u)" = 0 ] || sed -i '/^user /d' nginx.conf
  nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf" 2> log &
  local server=$! status=0
  end_at_exit "$server"
  until_ready test -S page.socket
  python3 "$real_folder/reload.py" "$server" page.socket
  kill -QUIT "$server"
  wait "$server" || status=$?
  echo "ended with status $status"
  cat log
}

postgres_server() { printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1; }
programs_postgresql() { echo "$(postgres_server)" psql pgbench setpriv; }
seen_postgresql() { echo postgres initdb psql pgbench; }
workload_postgresql() {
  mkdir unchecked && cd unchecked
  local user=nobody server status=0
  [ "$(id -u)" = 0 ] || user=$(id -un)
  bash "$service_data/postgresql/prepare.sh" "$service_data/postgresql" "$user" "$PWD"
  sh "$service_data/postgresql/serve.sh" "$service_data/postgresql" "$user" "$PWD" > server.log 2>&1 &
  server=$!
  end_at_exit "$server"
  local client=(psql -h "$PWD" -U bench -X -q -A -t -v ON_ERROR_STOP=1 postgres)
  until_ready "${client[@]}" -c 'select 1'

  # Each client draws its own numbers, so that the sums are the same in whatever order the transactions come.
  pgbench -h "$PWD" -U bench -n -c 6 -j 3 -t 40 --random-seed=7 postgres > pgbench.log
  sh "$service_data/postgresql/load.sh" "$service_data/postgresql" "$PWD" 25 >> pgbench.log
  grep 'transactions actually processed' pgbench.log
  "${client[@]}" -f "$real_folder/parallel.sql"
  "${client[@]}" -c 'set parallel_setup_cost = 0; set min_parallel_table_scan_size = 0' \
    -c 'explain (analyze) select product, count(*) from orders group by product' > plan
  grep -q 'Workers Launched: [1-9]' plan && echo "parallel workers were at work"
  kill -INT "$server"
  wait "$server" || status=$?
  echo "ended with status $status"
  # Connections that come too early, or are open when it ends.
  grep -vE 'the database system is starting up|due to administrator command' server.log || true
}

# An append-only file, rewritten by a forked child while clients write; a server that reads it has the same data.
programs_redis_aof() { echo redis-server redis-benchmark redis-cli; }
workload_redis_aof() {
  mkdir unchecked && cd unchecked
  local server i
  start_redis() {
    redis-server --port 0 --unixsocket "$PWD/s" --save "" --appendonly yes --appendfsync no --dir "$PWD" --daemonize no \
      --auto-aof-rewrite-percentage 0 --enable-debug-command yes --io-threads 2 >> log 2>&1 &
    server=$!
    end_at_exit "$server"
    until_ready answers PONG ping
  }
  answers() { redis-cli -s s "${@:2}" > answer && grep -q "^$1" answer; }
  start_redis
  for ((i = 0; i < 3000; ++i)); do
    printf 'SET key:%d %0200d\nRPUSH list:%d a%d b%d\nZADD sorted:%d %d m%d\n' \
      "$i" "$i" $((i % 50)) "$i" "$i" $((i % 20)) "$i" "$i"
  done | redis-cli -s s | sha256sum
  redis-benchmark -s s -q -n 8000 -c 20 -P 16 -d 300 -r 3000 -t set,lpush,hset,zadd > benchmark &
  local load=$!
  for i in 1 2 3; do
    until_ready answers Background bgrewriteaof
    until_ready answers aof_rewrite_in_progress:0 info persistence
  done
  wait "$load"
  redis-cli -s s info persistence | grep -o 'aof_last_bgrewrite_status:ok'
  redis-cli -s s config set activedefrag no > defrag
  redis-cli -s s debug digest > before
  redis-cli -s s shutdown nosave
  wait "$server"
  start_redis
  redis-cli -s s debug digest | cmp - before && echo "the file holds all data"
  redis-cli -s s get key:77
  redis-cli -s s lrange list:7 0 3
  redis-cli -s s zcard sorted:3
  redis-cli -s s shutdown nosave
  wait "$server"
}
