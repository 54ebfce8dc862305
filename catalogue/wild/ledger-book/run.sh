#!/bin/sh
# A private PostgreSQL on a Unix socket for as long as the service runs.
set -e
dir=$(mktemp -d)
if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; as="setpriv --reuid=postgres --regid=postgres --clear-groups"; fi
(cd "$dir" && $as initdb -D "$dir/data" -A trust -U ledger --no-sync >/dev/null)
trap 'kill $app 2>/dev/null; kill -INT $db 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT
(cd "$dir" && exec $as postgres -D "$dir/data" -k "$dir" -h "" -c max_connections=150 -c fsync=off -c logging_collector=off 2>/dev/null) &
db=$!
until psql -q -h "$dir" -U ledger -d postgres -c 'select 1' >/dev/null 2>&1; do sleep 0.1; done
psql -q -h "$dir" -U ledger -d postgres -f schema.sql >/dev/null
PGHOST=$dir PGUSER=ledger PGDATABASE=postgres node index.js "$1" &
app=$!
wait $app
