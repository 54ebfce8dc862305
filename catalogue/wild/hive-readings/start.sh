#!/usr/bin/env bash
set -e
export NODE_PATH="$WILD_BUILD/node_modules" PGHOST=127.0.0.1 PGPORT=$((PORT + 2)) PGUSER=apiary PGDATABASE=postgres
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
bin=${bin:-$(dirname "$(command -v postgres)")}
data=$TMPDIR/pg
mkdir "$data"
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$data"
  as=(runuser -u postgres --)
fi
"${as[@]}" "$bin/initdb" -D "$data" -U "$PGUSER" --auth trust --no-sync >/dev/null
"${as[@]}" "$bin/postgres" -D "$data" -p "$PGPORT" -k "$data" -c fsync=off -c max_connections=150 \
  -c shared_buffers=128MB -c max_parallel_workers_per_gather=0 &
until (: <"/dev/tcp/127.0.0.1/$PGPORT") 2>/dev/null; do sleep 0.2; done
sleep 1
node weather.js &
exec node server.js
