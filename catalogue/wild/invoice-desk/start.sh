#!/usr/bin/env bash
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
PATH=$PATH:$bin
export PGUSER=postgres PGDATABASE=postgres PGHOST="$TMPDIR/cluster"
export TAX_OFFICE_URL="http://127.0.0.1:$((PORT + 1))"
run=()
mkdir "$PGHOST"
if [ "$(id -u)" -eq 0 ]; then
    chown postgres: "$PGHOST"
    run=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
"${run[@]}" initdb -D "$PGHOST" -U postgres --auth=trust --no-sync --no-locale -E UTF8 > /dev/null
"${run[@]}" postgres -D "$PGHOST" -k "$PGHOST" -c listen_addresses= -c fsync=off -c max_connections=50 &
until pg_isready -q; do sleep 0.1; done
psql -q -v ON_ERROR_STOP=1 -f schema.sql
python tax_office.py $((PORT + 1)) &
exec gunicorn "invoices:create_app()" --worker-class gthread --threads 96 --bind 127.0.0.1:"$PORT"
