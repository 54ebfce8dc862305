#!/bin/sh
set -e
tmp=$(mktemp -d)
if [ "$(id -u)" = 0 ]; then
  chown postgres "$tmp"
  su_pg="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
(cd "$tmp" && $su_pg initdb -D "$tmp/db" -A trust -U box --no-sync > /dev/null)
cleanup() { kill "$node" 2>/dev/null; kill -INT "$pg" 2>/dev/null; wait; rm -rf "$tmp"; }
trap cleanup EXIT
trap 'exit 143' TERM INT
(cd "$tmp" && exec $su_pg postgres -D "$tmp/db" -k "$tmp" -h "" -c max_connections=120 -c synchronous_commit=off 2>/dev/null) &
pg=$!
while ! psql -qtA -h "$tmp" -U box -d postgres -f seats.sql >/dev/null 2>&1; do sleep 0.2; done
PGHOST=$tmp PGUSER=box PGDATABASE=postgres node seats.mjs "$1" &
node=$!
wait "$node"
