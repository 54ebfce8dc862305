#!/bin/bash
set -e
bin=$(dirname "$(readlink -f "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -1)")")
data=$TMPDIR/data
mkdir -p "$data"
as=""
if [ "$(id -u)" = 0 ]; then
  chown postgres "$data"
  as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
$as "$bin/initdb" -D "$data" -U lens -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
$as "$bin/postgres" -D "$data" -p $((PORT + 1)) -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" \
  -c max_connections=120 -c shared_buffers=128MB -c fsync=off -c autovacuum=off -c max_parallel_workers_per_gather=0 &
until "$bin/pg_isready" -q -h 127.0.0.1 -p $((PORT + 1)); do sleep 0.1; done
psql="$bin/psql -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p $((PORT + 1)) -U lens -d postgres"
$psql -f schema.sql
if [ "$VARIANT" != flawed ]; then
  $psql -c "CREATE INDEX rental_serial_key ON rental (upper(lens_serial), returned_on)"
fi
$psql -c "ANALYZE"
exec java -Xmx256m -cp "$WILD_BUILD/target/classes:$WILD_BUILD/lib/*" lens.Rentals
