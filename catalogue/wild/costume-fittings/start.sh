#!/bin/bash
set -e
sed -e "s|@TMP@|$TMPDIR|g" -e "s|@PORT@|$PORT|g" nginx.conf.in > "$TMPDIR/nginx.conf"
chmod 755 "$TMPDIR"
python tailors.py &
gunicorn --workers 1 --worker-class gthread --threads 160 --backlog 1024 --umask 0 --keep-alive 60 \
    --bind "unix:$TMPDIR/app.sock" --log-level warning app:app &
nginx -p "$TMPDIR" -c "$TMPDIR/nginx.conf" -e stderr &
wait
