#!/usr/bin/env bash
# Starts the desk's own PostgreSQL, the pilots' office and the desk.
set -eu
port=$1
db_port=$((port + 2))
data=$TMPDIR/pg
for dir in /usr/lib/postgresql/*/bin; do PATH=$PATH:$dir; done

as_db() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

mkdir -m 700 "$data"
[ "$(id -u)" != 0 ] || chown postgres "$data"
cd /
as_db env PATH="$PATH" initdb -D "$data/data" -U harbour -A trust -E UTF8 --no-sync >/dev/null
as_db env PATH="$PATH" postgres -D "$data/data" -p "$db_port" -c listen_addresses=127.0.0.1 \
  -c unix_socket_directories= -c max_connections=120 -c shared_buffers=64MB &

"$WILD_BUILD/quay-bookings" pilots "127.0.0.1:$((port + 1))" &
exec "$WILD_BUILD/quay-bookings" desk "127.0.0.1:$port"
