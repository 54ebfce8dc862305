#!/bin/bash
set -e
bin=$(dirname "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -1)")
data=$TMPDIR/pg
mkdir -p "$data"
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$data"
  as=(runuser -u postgres --)
fi
"${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust --no-sync >/dev/null
"${as[@]}" "$bin/postgres" -D "$data" -p $((PORT + 2)) -k "$data" -c listen_addresses=127.0.0.1 \
  -c max_connections=180 -c shared_buffers=64MB -c synchronous_commit=off -c fsync=off &
python authority.py &
python wait_db.py
exec uvicorn app:app --host 127.0.0.1 --port "$PORT" --log-level warning --no-access-log --backlog 1024
