#!/usr/bin/env bash
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
PATH=$PATH:$bin
export PGUSER=postgres PGDATABASE=postgres PGHOST="$TMPDIR/cluster"
run=()
mkdir "$PGHOST"
if [ "$(id -u)" -eq 0 ]; then
    chown postgres: "$PGHOST"
    run=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
"${run[@]}" initdb -D "$PGHOST" -U postgres --auth=trust --no-sync --no-locale -E UTF8 > /dev/null
"${run[@]}" postgres -D "$PGHOST" -k "$PGHOST" -c listen_addresses= -c fsync=off -c max_connections=120 &
until pg_isready -q; do sleep 0.1; done
python prepare.py
exec gunicorn shop.wsgi --worker-class gthread --threads 80 --bind 127.0.0.1:"$PORT"
