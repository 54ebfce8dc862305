#!/bin/bash
set -e
openssl req -x509 -newkey rsa:4096 -nodes -days 30 -subj /CN=registry.local \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$TMPDIR/registry.key" -out "$TMPDIR/registry.pem" 2>/dev/null
export REGISTRY_URL=https://127.0.0.1:$((PORT + 1)) REGISTRY_CA=$TMPDIR/registry.pem
python chip_registry.py &
exec gunicorn passports:application --bind 127.0.0.1:$PORT --worker-class gthread --workers 2 --threads 160 \
  --worker-connections 1000 --backlog 1024 --keep-alive 75 --worker-tmp-dir "$TMPDIR" --log-level warning
