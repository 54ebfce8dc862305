#!/usr/bin/env bash
set -eu
seconds=0.4
sessions=200
case "$VARIANT" in
    flawed) sessions=8 ;;
    healthy) seconds=0.6 ;;
esac
python register_standin.py --port $((PORT + 1)) --sessions "$sessions" --seconds "$seconds" &
export REGISTER_URL=http://127.0.0.1:$((PORT + 1))
exec gunicorn vatcheck.app:app --worker-class gthread --workers 1 --threads 96 --keep-alive 75 \
    --bind 127.0.0.1:"$PORT"
