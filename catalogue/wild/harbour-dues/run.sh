#!/bin/bash
# The harbour office: its database, the stand-in of customs, and the service.
set -e

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -n "$bin" ] || bin=$(dirname "$(command -v postgres)")
as=()
data="$TMPDIR/data"
mkdir "$data"
if [ "$(id -u)" = 0 ]; then
    chown postgres "$data"
    as=(setpriv --reuid postgres --regid postgres --clear-groups)
fi
cd /
"${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-sync >/dev/null
cd - >/dev/null
"${as[@]}" "$bin/postgres" -D "$data" -p $((PORT + 1)) -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c max_connections=160 -c shared_buffers=64MB -c synchronous_commit=off &
until "$bin/psql" -q -h 127.0.0.1 -p $((PORT + 1)) -U postgres -f schema.sql 2>/dev/null; do sleep 0.2; done

node customs.js &
node server.js &
wait -n
