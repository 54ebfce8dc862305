#!/usr/bin/env bash
set -eu
export ACCOUNTS_URL="http://127.0.0.1:$((PORT + 1))" THEATRE_URL="http://127.0.0.1:$((PORT + 2))"
python remote.py $((PORT + 1)) $((PORT + 2)) &
exec gunicorn seats.app:app --worker-class gthread --threads 100 --bind 127.0.0.1:"$PORT"
