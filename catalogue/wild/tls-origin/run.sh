#!/bin/bash
# nginx terminates the users' HTTP and talks TLS to the origin, as the security policy wants it.
set -e
dir=$(mktemp -d)
variant=${VARIANT:-flawed}
sed -e "s|@PORT@|$1|g" -e "s|@ORIGIN@|$(($1 + 1))|g" -e "s|@DIR@|$dir|g" "nginx.$variant.conf" > "$dir/nginx.conf"
node origin.js $(($1 + 1)) &
origin=$!
nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" &
nginx=$!
trap 'kill $nginx $origin 2> /dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT
wait $nginx
