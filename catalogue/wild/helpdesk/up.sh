#!/bin/bash -e
# helpdesk: database in $TMPDIR, service on port $1
PATH=$PATH:$(dirname $(ls /usr/lib/postgresql/*/bin/initdb | tail -1))
export PGHOST=$TMPDIR/pgdata PGUSER=postgres
pg() { if [ $(whoami) = root ]; then setpriv --reuid=postgres --regid=postgres --clear-groups $*; else $*; fi; }
mkdir $PGHOST
[ $(whoami) = root ] && chown postgres $PGHOST
pg initdb -A trust -U postgres -N -D $PGHOST >/dev/null
pg postgres -D $PGHOST -k $PGHOST -c listen_addresses= -F -c max_parallel_workers_per_gather=0 -c shared_buffers=256MB &
until pg_isready -q; do sleep .2; done
psql -q -v ON_ERROR_STOP=1 -f schema.sql
if [ $VARIANT != flawed ]; then psql -q -v ON_ERROR_STOP=1 -f migrations_2.sql; fi
if [ $VARIANT = healthy ]; then export CRM_SECONDS=0.35; fi
exec uvicorn service:app --port $1 --log-level warning
