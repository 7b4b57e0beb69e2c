# Finds the programs of PostgreSQL, which Debian keeps out of PATH, and says how a server is started. Open it to change
# the server's settings. Sourced by the other scripts here, which are run by bash or by sh.
export LC_ALL=C
unset PGDATA PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS PGSERVICE

if ! command -v postgres > /dev/null || ! command -v initdb > /dev/null; then
  newest=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  PATH=$newest:$PATH
fi
if ! command -v postgres > /dev/null; then
  echo "no postgres in PATH or /usr/lib/postgresql/*/bin; Debian has it in the package postgresql" >&2
  exit 127
fi

# Effects: becomes a program, run by a user, as PostgreSQL refuses to be root's. The capability lets it reach what only
# root may read and write: the preloaded libraries, and the files to which they write what they have seen.
become() {
  user=$1
  shift
  [ "$(id -u)" = 0 ] || exec "$@"
  exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --inh-caps +dac_override \
    --ambient-caps +dac_override "$@"
}

# Effects: becomes a server in a folder that prepare.sh has made. It is reached by a socket in that folder only, and
# leaves the disk alone as far as it can, since that is not what is measured.
serve() {
  user=$1 folder=$2
  cd "$folder"
  become "$user" postgres -D "$folder/data" -c listen_addresses= -c "unix_socket_directories=$folder" -c fsync=off \
    -c synchronous_commit=off -c autovacuum=off -c jit=off -c shared_buffers=32MB -c max_connections=20 \
    -c dynamic_shared_memory_type=mmap -c log_min_messages=fatal
}
