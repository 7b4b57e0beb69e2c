#!/usr/bin/env bash
# The workloads of real_program.sh, here and in real_workloads_*.sh. For each NAME
#   programs_NAME  prints the programs that it needs
#   seen_NAME      (optional) prints the programs that must be seen to run on sluice, where these are others: a compiler is
#                  one program to its user and several to the system
#   missing_NAME   (optional) prints what else it needs and does not find
#   prepare_NAME   (optional) writes its input into the current folder, once, on the system's malloc
#   workload_NAME  does the work in the current folder, which is empty; reads from $INPUT; prints what must be the same
# What differs from run to run (process ids, times) is kept out of the output; files that do go into ./unchecked.
# Executed rather than sourced, it runs the workload that its argument names.
set -euo pipefail

programs_bash() { echo bash; }
workload_bash() {
  local -A count=()
  local -a list=()
  local i word text=""
  for ((i = 0; i < 20000; ++i)); do
    word="word$((i * 7919 % 997))"
    count[$word]=$((${count[$word]:-0} + 1))
    list+=("$word-$i")
  done
  for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort
  for ((i = 0; i < 2000; ++i)); do text="$text${list[i]},"; done
  echo "${#text} ${text//word/w}" | cksum
  for i in {1..50}; do (echo "subshell $i: $(echo "$i" | tr 0-9 a-j)") | cat; done
  printf '%s\n' "${list[@]}" | while IFS=- read -r word i; do [ "$i" -lt 100 ] && echo "$word/$i"; done || true
  cat <<< "$(printf '%s' "${text:0:1000}")"
}

programs_coreutils() { echo sort uniq tr cut join wc head tail seq od base64 sha256sum ls cp mv rm du split comm paste tac shuf; }
workload_coreutils() {
  seq 1 60000 | awk '{ print ($1 * 48271) % 65521, "line", $1 % 37 }' > numbers
  sort -n numbers > sorted
  sort -k3,3n -k1,1nr numbers | sed -n 1,50p
  sort --parallel=4 -S 1M numbers | sha256sum
  cut -d' ' -f3 numbers | sort | uniq -c
  tr 'a-z' 'A-Z' < sorted | tail -n 20 | tac
  sort numbers > by_text
  head -n 500 by_text > first
  join first by_text | wc
  od -A d -t x1 sorted | tail -n 3
  base64 sorted | wc -c
  split -l 5000 sorted part.
  paste part.aa part.ab | sed -n 1,3p
  sort part.ac | comm -12 - by_text | wc -l
  shuf --random-source=sorted -n 10 sorted
  mkdir many
  (cd many && seq 1 800 | xargs touch && ls -1 | sort -n | tail -n 2 && ls -lR --time-style=+ | wc -l)
  cp -r many copies && mv copies moved && du --apparent-size -b sorted | cut -f1 && rm -r moved many
}

programs_git() { echo git; }
workload_git() {
  export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
  export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@example.org
  export GIT_AUTHOR_DATE="2024-01-01T00:00:00Z" GIT_COMMITTER_DATE="2024-01-01T00:00:00Z"
  mkdir unchecked && cd unchecked
  git init -q -b main repository && cd repository
  git config gc.auto 0
  local i
  for i in {1..25}; do
    seq "$i" $((i * 40)) > "file$((i % 7))"
    seq 1 1000 > "big$i"
    git add . && git commit -q -m "commit $i"
  done
  git checkout -q -b side HEAD~10
  echo side > side && git add side && git commit -q -m side
  git checkout -q main && git merge -q -m merged side
  git log --stat --graph --all | cat
  git diff HEAD~5 HEAD | sha256sum
  git blame file3 | tail -n 3
  git gc -q --aggressive
  git fsck --full --strict
  git rev-list --objects --all | sort | sha256sum
  cd .. && git clone -q --no-local repository copy && cd copy && git log --oneline -n 5
  git grep -c 99 | sort
  git archive --format=tar HEAD | sha256sum
}

programs_perl() { echo perl; }
workload_perl() {
  perl -e '
    use strict; use warnings;
    my %seen; my @all;
    for my $i (1 .. 60000) { my $k = ($i * 7919) % 10007; push @{$seen{$k}}, "v$i"; push @all, { id => $i, name => "n$k" }; }
    print scalar(keys %seen), "\n";
    print join(",", map { "$_:" . scalar @{$seen{$_}} } (sort { $a <=> $b } keys %seen)[0 .. 20]), "\n";
    my $text = join " ", map { "$_->{name}=$_->{id}" } @all;
    my $hits = 0; $hits++ while $text =~ /n(\d+)5=(\d*7)\b/g; print "$hits\n";
    $text =~ s/(\d)(\d)/$2$1/g; print length($text), " ", unpack("%32C*", $text), "\n";
    my @sorted = sort { $a->{name} cmp $b->{name} || $a->{id} <=> $b->{id} } @all; print $sorted[$_]{id}, "\n" for 0, 100, -1;
    for my $n (1 .. 10) { my $pid = fork; if (!$pid) { my @x = map { "x" x $_ } 1 .. 500; exit(@x == 500 ? $n : 0) } waitpid $pid, 0; print $? >> 8, "\n"; }
    print `echo from a child`;'
}

programs_python3() { echo python3; }
workload_python3() {
  PYTHONHASHSEED=0 PYTHONMALLOC=malloc python3 -c '
import collections, hashlib, json, re, subprocess, sys, threading, zlib
results = [None] * 6
def work(number):
    data = [{"id": i, "name": "x" * (i % 50), "values": list(range(i % 20))} for i in range(4000)]
    text = json.dumps(data, sort_keys=True)
    assert json.loads(text) == data
    words = collections.Counter(re.findall(r"[a-z]+|\d+", text))
    results[number] = hashlib.sha256((text + str(sorted(words.items())) + str(number)).encode()).hexdigest()
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
print(*results, sep="\n")
for n in range(8):
    print(subprocess.run([sys.executable, "-c", f"print(sum(range({n}000)))"], capture_output=True, text=True, check=True).stdout)
blob = bytes(range(256)) * 20000
assert zlib.decompress(zlib.compress(blob)) == blob
print(len(zlib.compress(blob)))
'
  PYTHONHASHSEED=0 python3 -c '
import ast, sqlite3, decimal, ctypes
class Node:
    def __init__(self, depth): self.children = [Node(depth - 1) for _ in range(4)] if depth else []
    def count(self): return 1 + sum(c.count() for c in self.children)
print(Node(7).count())
print(len(ast.dump(ast.parse("\n".join(f"def f{i}(a, b={i}): return a * b + {i}" for i in range(2000))))))
db = sqlite3.connect(":memory:")
db.execute("create table t (a, b)")
db.executemany("insert into t values (?, ?)", ((i, str(i * i)) for i in range(20000)))
print(db.execute("select count(*), sum(length(b)) from t where b like ?", ("%44%",)).fetchone())
decimal.getcontext().prec = 300; print(decimal.Decimal(2).sqrt())
buffer = ctypes.create_string_buffer(100000); print(len(buffer.raw))
'
}

programs_gcc() { echo gcc; }
seen_gcc() { echo gcc cc1 as ld; }
prepare_gcc() {
  local here
  here=$(dirname "${BASH_SOURCE[0]}")
  cp "$here"/{first_call,early_preload,opened_late}.c .
  cp "$here/../call_words.h" ..
}
workload_gcc() {
  local source
  for source in first_call early_preload opened_late; do
    gcc -O2 -D_GNU_SOURCE -c "$INPUT/$source.c" -o "$source.o"
    gcc -O0 -D_GNU_SOURCE -S "$INPUT/$source.c" -o "$source.s"
  done
  gcc -O2 -flto -D_GNU_SOURCE "$INPUT/first_call.c" -o program -pthread -Wl,--build-id=none
  nm program | wc -l
  ! gcc -c -x c - <<< "int f( { return 1; }" -o broken.o
}

programs_g++() { echo g++; }
seen_g++() { echo g++ cc1plus as ld; }
prepare_g++() { cp "$(dirname "${BASH_SOURCE[0]}")"/{subject.hpp,stats_subject.cpp} .; }
workload_g++() {
  g++ -std=c++20 -O2 -c "$INPUT/stats_subject.cpp" -o stats_subject.o
  g++ -std=c++20 -g -c "$INPUT/stats_subject.cpp" -o debug.o
  g++ stats_subject.o -o program -pthread -Wl,--build-id=none
  ./program status 0
}

programs_sqlite3() { echo sqlite3; }
workload_sqlite3() {
  sqlite3 unchecked.db << 'SQL'
pragma journal_mode = off;
create table t (id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, 'name' || (i * 7919 % 10007), i * 0.5 from n;
create index by_name on t (name, value);
select count(*), sum(value), count(distinct name) from t;
select name, count(*), max(value) from t group by name order by 2 desc, 1 limit 10;
select a.id, b.id from t a join t b on a.name = b.name and a.id < b.id order by 1, 2 limit 20;
update t set name = upper(name) where id % 3 = 0;
delete from t where id % 7 = 0;
select group_concat(name, ',') from (select name from t order by value desc limit 500);
vacuum;
pragma integrity_check;
select json_group_array(json_object('id', id, 'name', name)) from (select * from t order by id limit 200);
SQL
}

programs_redis() { echo redis-server redis-benchmark redis-cli; }
workload_redis() {
  mkdir unchecked
  local socket="$PWD/unchecked/s" server i
  redis-server --port 0 --unixsocket "$socket" --save "" --appendonly no --dir "$PWD/unchecked" --daemonize no \
    --databases 2 --enable-debug-command yes > unchecked/log 2>&1 &
  server=$!
  for ((i = 0; i < 500; ++i)); do
    redis-cli -s "$socket" ping > unchecked/ping 2>&1 && break
    sleep 0.02
  done
  cat unchecked/ping
  redis-benchmark -s "$socket" -q -n 20000 -c 20 -P 8 -d 200 -r 1000 -t set,get,lpush,hset,zadd,mset > unchecked/benchmark
  redis-cli -s "$socket" flushall
  for ((i = 0; i < 2000; ++i)); do
    printf 'SET key:%d %s\nRPUSH list:%d a%d b%d\nHSET hash:%d f%d v%d\n' "$i" "$((i * i))" $((i % 50)) "$i" "$i" $((i % 20)) "$i" "$i"
  done | redis-cli -s "$socket" | sha256sum
  redis-cli -s "$socket" dbsize
  redis-cli -s "$socket" lrange list:7 0 5
  redis-cli -s "$socket" hlen hash:3
  redis-cli -s "$socket" eval 'local t = {} for i = 1, 1000 do t[i] = redis.call("GET", "key:" .. i) end return #table.concat(t, ",")' 0
  redis-cli -s "$socket" bgsave > unchecked/bgsave
  for ((i = 0; i < 500; ++i)); do
    redis-cli -s "$socket" info persistence > unchecked/persistence
    grep -q rdb_bgsave_in_progress:0 unchecked/persistence && break
    sleep 0.02
  done
  grep -o 'rdb_last_bgsave_status:ok' unchecked/persistence
  redis-cli -s "$socket" debug reload
  redis-cli -s "$socket" dbsize
  redis-cli -s "$socket" memory doctor > unchecked/doctor
  redis-cli -s "$socket" shutdown nosave
  wait "$server"
}

programs_node() { echo node; }
workload_node() {
  node -e '
const { Worker, isMainThread } = require("worker_threads");
const crypto = require("crypto"), zlib = require("zlib"), { execFileSync } = require("child_process");
const body = `const { parentPort, workerData } = require("worker_threads");
  const m = new Map(); for (let i = 0; i < 50000; i++) m.set("k" + (i * 7919 % 10007), { i, s: "x".repeat(i % 40) });
  parentPort.postMessage([workerData, m.size, Buffer.alloc(300000, workerData).toString("base64").length]);`;
let open = 4; const results = [];
for (let n = 0; n < 4; n++) new Worker(body, { eval: true, workerData: n })
  .on("message", (m) => results.push(m)).on("exit", () => { if (--open === 0) console.log(JSON.stringify(results.sort())); });
const text = JSON.stringify(Array.from({ length: 20000 }, (_, i) => ({ i, name: "n" + i % 99 })));
console.log(text.length, crypto.createHash("sha256").update(text).digest("hex"));
console.log(zlib.gunzipSync(zlib.gzipSync(text)).toString() === text);
console.log(execFileSync("echo", ["from a child"]).toString());
console.log(text.match(/"n\d7"/g).length);'
}

programs_lua() { echo lua5.4; }
workload_lua() {
  lua5.4 -e '
local t, parts = {}, {}
for i = 1, 100000 do local k = "k" .. (i * 7919 % 10007); t[k] = (t[k] or 0) + i; parts[#parts + 1] = k end
local keys = {} for k in pairs(t) do keys[#keys + 1] = k end table.sort(keys)
print(#keys, keys[1], t[keys[1]], keys[#keys])
local s = table.concat(parts, ",") print(#s, select(2, s:gsub("k(%d)7", "%1")))
for i = 1, 200 do local co = coroutine.wrap(function() for j = 1, 50 do coroutine.yield(("x"):rep(j)) end end) for j = 1, 50 do assert(#co() == j) end end
collectgarbage() print(collectgarbage("count") < 100000)
print(pcall(function() error({ code = 7 }) end))' | sed 's/table: 0x[0-9a-f]*/table/'
}

programs_openssl() { echo openssl; }
prepare_openssl() {
  head -c 300000 "$(command -v openssl)" > data
  openssl genrsa -out key.pem 2048
  openssl req -x509 -new -key key.pem -subj /CN=example.org -days 3650 -set_serial 1 -out certificate.pem
}
workload_openssl() {
  cp "$INPUT/data" data
  local digest
  for digest in md5 sha1 sha256 sha512 sha3-256 blake2b512; do openssl dgst -"$digest" data; done
  openssl enc -aes-256-cbc -K "$(printf 'ab%.0s' {1..32})" -iv "$(printf 'cd%.0s' {1..16})" -in data -out data.enc
  openssl enc -d -aes-256-cbc -K "$(printf 'ab%.0s' {1..32})" -iv "$(printf 'cd%.0s' {1..16})" -in data.enc | cmp - data
  openssl dgst -sha256 -sign "$INPUT/key.pem" -out signature data
  openssl dgst -sha256 -verify <(openssl rsa -in "$INPUT/key.pem" -pubout 2> /dev/null) -signature signature data
  openssl x509 -in "$INPUT/certificate.pem" -noout -text
  openssl rsa -in "$INPUT/key.pem" -noout -text
  openssl verify -CAfile "$INPUT/certificate.pem" "$INPUT/certificate.pem"
  openssl prime -hex 7fffffffffffffffffffffffffffffff
}

# A file of some megabytes that compresses neither too well nor too badly.
write_data() { seq 1 "$1" | awk '{ print $1, ($1 * 48271) % 65521, "some text that repeats" }'; }

programs_xz() { echo xz; }
workload_xz() {
  write_data 40000 > data
  xz -k -1 -T2 --block-size=300KiB data
  xz -t data.xz
  xz -dc data.xz | cmp - data
  xz --robot --list data.xz
  head -c 200000 data | xz -6 | sha256sum
}

programs_zstd() { echo zstd; }
workload_zstd() {
  write_data 100000 > data
  zstd -q -k -3 -T2 data -o fast.zst
  zstd -q -k -12 data -o small.zst
  zstd -q -dc fast.zst | cmp - data
  zstd -q -dc small.zst | cmp - data
  zstd -q -t fast.zst small.zst
}

programs_tar() { echo tar; }
workload_tar() {
  mkdir -p tree/{a,b,c}/{x,y,z}
  local i outer=abc inner=xyz
  for i in {1..300}; do seq 1 "$i" > "tree/${outer:i % 3:1}/${inner:i % 2:1}/file$i"; done
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf plain.tar tree
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - tree | tar -tf - | sort | sha256sum
  mkdir out && tar -xf plain.tar -C out && diff -r tree out/tree && echo same
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf - tree | tar -xzOf - tree/a/y/file3 tree/b/y/file1
  cp plain.tar copy.tar # joined to itself, an archive grows without end by tar 1.35
  tar --concatenate -f plain.tar copy.tar
  tar -tf plain.tar | wc -l
}

programs_gdb() { echo gdb; }
prepare_gdb() {
  cat > program.c << 'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int value; struct node *next; char text[40]; };
static int sum(const struct node *list) { return list == NULL ? 0 : list->value + sum(list->next); }
int main(void) {
  struct node *list = NULL;
  for (int i = 0; i < 5; ++i) {
    struct node *node = malloc(sizeof *node);
    node->value = i;
    node->next = list;
    strcpy(node->text, "some text");
    list = node;
  }
  printf("%d\n", sum(list));
  return 3;
}
C
  gcc -g -O0 program.c -o program
}
workload_gdb() {
  gdb -nx -batch -ex 'set confirm off' -ex 'set debuginfod enabled off' -ex 'break sum' -ex run -ex bt -ex 'print *list' \
    -ex 'print list->next->value' -ex 'call (int) strlen(list->text)' -ex 'delete' -ex continue -ex 'info line main' \
    -ex 'python print(sum(i * i for i in range(10000)))' "$INPUT/program" 2>&1 |
    sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/process [0-9]+/process PID/g'
}

programs_curl() { echo curl; }
prepare_curl() { write_data 100000 > data; }
workload_curl() {
  curl -sS "file://$INPUT/data" -o copy
  cmp copy "$INPUT/data" && echo same
  curl -sS -r 1000-1999 "file://$INPUT/data" | sha256sum
  curl -sS "file://$INPUT/{data,data}" "file://$INPUT/data" | wc -c
  ! curl -sS "file://$INPUT/missing" 2>&1 | sed "s|$INPUT|INPUT|"
}

programs_vim() { command -v vim > /dev/null && echo vim || echo vim.tiny; }
prepare_vim() { seq 1 5000 | awk '{ print $1, "the quick brown fox", ($1 * 48271) % 65521 }' > text; }
workload_vim() {
  cp "$INPUT/text" text
  HOME="$PWD" "$(programs_vim)" -u NONE -i NONE -n -es text \
    -c '%s/quick \(\w*\)/\1 slow/g' -c 'g/77/m$' -c '%sort! n' -c '1,50normal! yyPJ' -c '10,400d' -c 'undo' -c 'redo' \
    -c '%s/\d\+$/\=submatch(0)*2/e' -c 'write' -c 'quit'
  sha256sum text
  head -n 3 text
}

programs_tmux() { echo tmux; }
workload_tmux() {
  mkdir unchecked
  export TMUX_TMPDIR="$PWD/unchecked" TERM=screen HOME="$PWD"
  local i
  tmux -f /dev/null new-session -d -s main -x 100 -y 30 'seq 1 3000; tmux wait-for -S printed; exec cat'
  tmux wait-for printed
  tmux set-option -g history-limit 5000
  for i in {1..10}; do
    tmux new-window -t main "seq 1 500; tmux wait-for -S window$i; exec cat"
    tmux wait-for "window$i"
    tmux split-window -t main 'exec cat'
  done
  tmux list-panes -s -t main -F '#{window_index}.#{pane_index} #{pane_width}x#{pane_height}'
  tmux resize-window -t main -x 80 -y 24
  for ((i = 0; i < 500; ++i)); do
    tmux capture-pane -p -t main:0 > unchecked/pane
    grep -qx 3000 unchecked/pane && break
    sleep 0.02
  done
  tail -n 5 unchecked/pane
  tmux set-buffer "$(seq 1 200)" && tmux show-buffer | sha256sum
  tmux kill-server
}

real_folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/real_programs"
for part in servers languages builds services; do source "$(dirname "${BASH_SOURCE[0]}")/real_workloads_$part.sh"; done

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  "workload_$1"
fi
