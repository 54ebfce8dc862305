#!/bin/bash
# The register behind the guild's edge proxy; traffic between the two is encrypted, as all is inside the network.
set -e

app_port=$((PORT + 1))
threads=16
upstream=upstream-1.1.conf
case "$VARIANT" in
flawed) upstream=upstream-1.0.conf ;;
healthy) threads=160 ;;
esac

cp "$upstream" "$TMPDIR/upstream.conf"
sed -e "s|@ROOM@|$TMPDIR|; s|@PORT@|$PORT|; s|@APP_PORT@|$app_port|; s|@CERT@|$WILD_BUILD/register.crt|" \
    edge.conf.in >"$TMPDIR/edge.conf"

gunicorn register:application --bind "127.0.0.1:$app_port" --worker-class gthread --workers 1 --threads "$threads" \
    --keep-alive 75 --backlog 512 --log-level warning \
    --certfile "$WILD_BUILD/register.crt" --keyfile "$WILD_BUILD/register.key" &
nginx -c "$TMPDIR/edge.conf" -e stderr &
wait
