#!/bin/bash
set -e
PGBIN=$(dirname "$(readlink -f "$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -1)")")
export PGHOST=$TMPDIR/pg
su_pg() { if [ $UID = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }
install -d -m 700 "$PGHOST"; [ $UID != 0 ] || chown postgres "$PGHOST"
su_pg "$PGBIN/initdb" -A trust -U postgres --no-sync -D "$PGHOST" > /dev/null
su_pg "$PGBIN/postgres" -D "$PGHOST" -k "$PGHOST" -c listen_addresses='' -c fsync=off &
until "$PGBIN/pg_isready" -q; do sleep 0.1; done
"$PGBIN/psql" -q -U postgres -v ON_ERROR_STOP=1 -f sql/schema.sql
exec gunicorn -k gthread -w 1 --threads 80 -b 127.0.0.1:$PORT till:app
