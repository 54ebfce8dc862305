#!/bin/bash
# Start the register's PostgreSQL, load the register, then serve it.
set -e
BIN=$(dirname "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null | tail -1 || command -v postgres)")
[ -x "$BIN/initdb" ] || BIN=$(dirname "$(command -v initdb)")
DATA=$TMPDIR/register
export PGPORT=$((PORT + 1)) PGHOST=127.0.0.1 PGUSER=postgres PGDATABASE=postgres
mkdir "$DATA"
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then
  chown postgres "$DATA"
  as() { runuser -u postgres -- "$@"; }
fi
cd /
as "$BIN/initdb" -D "$DATA" -U postgres -A trust --no-sync >/dev/null
as "$BIN/postgres" -D "$DATA" -p "$PGPORT" -k "$DATA" -c listen_addresses=127.0.0.1 -c max_connections=80 \
  -c fsync=off -c shared_buffers=96MB &
until "$BIN/pg_isready" -q; do sleep 0.1; done
cd "$OLDPWD"
"$BIN/psql" -q -v ON_ERROR_STOP=1 -f schema.sql
export NODE_PATH=$WILD_BUILD/node_modules
node lab.js &
exec node server.js
