#!/bin/bash
set -e
prefix=$TMPDIR/nginx
mkdir -p "$prefix/tmp"
sed -e "s/@PORT@/$PORT/" -e "s/@PROGRAMME@/$((PORT + 1))/" conf/nginx.conf > "$prefix/nginx.conf"
cp conf/zone.conf "$prefix/zone.conf"
if [ "$VARIANT" != flawed ]; then
  sed -i -e 's/rate=150r/rate=5000r/' "$prefix/zone.conf"
  sed -i -e 's/burst=300/burst=300 nodelay/' "$prefix/nginx.conf"
fi
[ "$(id -u)" = 0 ] && sed -i '1i user root;' "$prefix/nginx.conf"
node programme.js &
"$(command -v nginx || echo /usr/sbin/nginx)" -p "$prefix" -c nginx.conf -e stderr
