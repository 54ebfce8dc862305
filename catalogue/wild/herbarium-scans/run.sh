#!/bin/bash
# Starts the archive's stand-in and the service with the limits of its unit file.
ulimit -n 4096
python archive.py &

case "$VARIANT" in
    flawed) ulimit -n 128 ;;
    *) ulimit -n 4096 ;;
esac

exec gunicorn app:application --bind "127.0.0.1:$PORT" --worker-class gthread --workers 1 --threads 128 \
    --keep-alive 30 --backlog 512 --worker-tmp-dir "$TMPDIR"
