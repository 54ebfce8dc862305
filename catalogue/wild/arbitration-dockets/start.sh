#!/bin/bash
set -e
bin=$(dirname "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -1)")
data="$TMPDIR/pg"
as=()
chmod 755 "$TMPDIR"
mkdir "$data"
if [ "$(id -u)" = 0 ]; then
    chown postgres "$data" "$TMPDIR"
    as=(runuser -u postgres --)
fi
(cd "$TMPDIR" && "${as[@]}" "$bin/initdb" -D "$data" -U postgres --auth trust --no-sync >/dev/null)
(cd "$TMPDIR" && "${as[@]}" "$bin/postgres" -D "$data" -k "$TMPDIR" -c listen_addresses= -c max_connections=200 \
    -c fsync=off -c synchronous_commit=off; true) &
until [ -S "$TMPDIR/.s.PGSQL.5432" ]; do sleep 0.2; done
sleep 0.5
python roster.py &
uvicorn app:app --host 127.0.0.1 --port "$PORT" --no-access-log --log-level warning &
wait
