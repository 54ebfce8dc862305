#!/bin/bash
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
[ -n "$bin" ] || bin=$(dirname "$(readlink -f "$(command -v postgres)")")
data="$TMPDIR/pg"
mkdir -p "$data"
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$data"
  as=(setpriv --reuid postgres --regid postgres --init-groups)
fi
cd "$data"
"${as[@]}" "$bin/initdb" -D "$data/db" -U slips --auth trust --no-sync >/dev/null
"${as[@]}" "$bin/postgres" -D "$data/db" -p $((PORT + 2)) -k "$data" -c listen_addresses=127.0.0.1 \
  -c max_connections=150 -c fsync=off -c shared_buffers=64MB &
until "$bin/pg_isready" -q -h 127.0.0.1 -p $((PORT + 2)); do sleep 0.1; done
cd "$OLDPWD"
python sealer.py &
exec uvicorn app:app --host 127.0.0.1 --port "$PORT" --no-access-log --log-level warning --backlog 1024
