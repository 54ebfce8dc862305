#!/bin/sh
# Rate per visitor. Behind the CDN all visitors have the CDN's address.
set -e
case "$VARIANT" in
  mended) rate=5000 delay=' nodelay' ;;
  healthy) rate=9000 delay=' nodelay' ;;
  *) rate=90 delay= ;;
esac
work=$(mktemp -d)
sed "s/@RATE@/$rate/; s/@DELAY@/$delay/; s/@PORT@/$1/; s/@APP@/$(($1 + 1))/" nginx.conf.in > "$work/nginx.conf"
node app.js $(($1 + 1)) &
app=$!
nginx -p "$work/" -c "$work/nginx.conf" -e "$work/error.log" &
web=$!
trap 'kill $web $app 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 143' INT TERM
wait $web
