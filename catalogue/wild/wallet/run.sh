#!/bin/bash
# PostgreSQL on a Unix socket in a temporary folder, then the wallet.
set -e
dir=$(mktemp -d)
pg=()
if [[ $EUID -eq 0 ]]; then chown postgres "$dir"; pg=(setpriv --reuid=postgres --regid=postgres --clear-groups); fi
cd "$dir"
"${pg[@]}" initdb -D "$dir/data" -A trust -U wallet --no-sync > /dev/null
"${pg[@]}" postgres -D "$dir/data" -k "$dir" -h '' -c max_connections=120 -c fsync=off 2> /dev/null &
db=$!
trap 'kill $app 2> /dev/null; kill -INT $db 2> /dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT
until psql -qXh "$dir" -U wallet postgres -c 'select 1' &> /dev/null; do sleep 0.1; done
DATABASE_URL="host=$dir user=wallet dbname=postgres" "$WILD_BUILD/wallet" "$1" &
app=$!
wait $app
