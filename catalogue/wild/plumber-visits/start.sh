#!/bin/bash
set -e
export DB_PORT=$((PORT + 1)) TRAFFIC_PORT=$((PORT + 2))
PG=$(dirname "$(ls /usr/lib/postgresql/*/bin/pg_isready 2>/dev/null | tail -1 || true)")
[ -x "$PG/pg_isready" ] || PG=$(dirname "$(readlink -f "$(command -v postgres)")")
DATA=$TMPDIR/pg
as_pg() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }
mkdir -p "$DATA" && chmod 700 "$DATA"
[ "$(id -u)" != 0 ] || chown postgres "$DATA"
cd /
as_pg "$PG/initdb" -D "$DATA" -U postgres -A trust --no-sync >/dev/null
as_pg "$PG/postgres" -D "$DATA" -p "$DB_PORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
  -c max_connections=200 -c shared_buffers=64MB -c fsync=off &
until "$PG/pg_isready" -q -h 127.0.0.1 -p "$DB_PORT"; do sleep 0.1; done
"$PG/createdb" -h 127.0.0.1 -p "$DB_PORT" -U postgres visits
cd "$OLDPWD"
python traffic.py &
exec java -Xmx256m -jar "$WILD_BUILD/source/target/plumber-visits.jar"
