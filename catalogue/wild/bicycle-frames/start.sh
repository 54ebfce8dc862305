#!/bin/bash
# Starts a PostgreSQL of its own below TMPDIR, fills it, and then serves.
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
bin=${bin:-$(dirname "$(readlink -f "$(command -v postgres)")")}
data=$TMPDIR/pg
db_port=$((PORT + 1))
mkdir -p "$data"
as=()
if [ "$(id -u)" = 0 ]; then
    chown postgres "$data"
    as=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi
"${as[@]}" "$bin/initdb" -D "$data/db" -U register -A trust -E UTF8 --no-sync >/dev/null
"${as[@]}" "$bin/postgres" -D "$data/db" -p "$db_port" -k "$data" -c listen_addresses=127.0.0.1 &
until "$bin/pg_isready" -q -h 127.0.0.1 -p "$db_port"; do sleep 0.2; done
"$bin/psql" -q -h 127.0.0.1 -p "$db_port" -U register -d postgres -v ON_ERROR_STOP=1 -f schema.sql
exec "$WILD_BUILD/target/release/bicycle-frames"
