#!/usr/bin/env bash
# private database, then the service
set -e
export PATH="$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)" PGDATA="$TMPDIR/db" PGHOST="$TMPDIR/db" PGUSER=postgres
mkdir "$PGDATA"
if [ "$(id -u)" = 0 ]; then chown postgres "$PGDATA"; as="setpriv --reuid=postgres --regid=postgres --clear-groups"; fi
$as initdb --auth=trust --username=postgres --no-sync >/dev/null
$as postgres -k "$PGDATA" -c listen_addresses= -c fsync=off -c max_connections=100 &
until pg_isready -q; do sleep 0.1; done
exec uvicorn bookings.main:app --host 127.0.0.1 --port "$1" --no-access-log
