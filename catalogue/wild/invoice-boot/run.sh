#!/bin/sh
# PostgreSQL in a temporary folder on a free port (JDBC needs TCP), then the application.
set -e
home=$(mktemp -d)
run=""
if [ "$(id -u)" = 0 ]; then chown postgres "$home"; run="setpriv --reuid=postgres --regid=postgres --clear-groups"; fi
(cd "$home" && $run initdb -D "$home/pg" -A trust -U fjord --no-sync >/dev/null)
trap 'kill $java 2>/dev/null; kill -INT $postgres 2>/dev/null; wait; rm -rf "$home"' EXIT
trap 'exit 143' TERM INT
dbport=$(($1 + 1))
(cd "$home" && exec $run postgres -D "$home/pg" -k "$home" -h 127.0.0.1 -p $dbport -c fsync=off 2>/dev/null) &
postgres=$!
until psql -q -h "$home" -p $dbport -U fjord -d postgres -c 'select 1' >/dev/null 2>&1; do sleep 0.1; done
psql -q -h "$home" -p $dbport -U fjord -d postgres -f src/main/resources/schema.sql
java -Xmx320m -jar target/invoice.jar --server.port="$1" \
  --spring.datasource.url=jdbc:postgresql://127.0.0.1:$dbport/postgres &
java=$!
wait $java
