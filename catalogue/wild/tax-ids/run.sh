#!/bin/bash
set -e
port=$1
export REGISTER_URL=http://127.0.0.1:$((port + 1))
jvm=(-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dsun.net.httpserver.nodelay=true -cp "$WILD_BUILD/classes")
java "${jvm[@]}" desk.Register $((port + 1)) &
register=$!
java "${jvm[@]}" -Djdk.httpclient.keepalive.timeout=20 desk.VatDesk "$port" &
desk=$!
trap 'kill $desk $register 2> /dev/null; wait' EXIT
trap 'exit 143' TERM INT
wait $desk
