#!/bin/bash
set -e
port=$1
export FEED_URL=http://127.0.0.1:$((port + 1))
jvm=(-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$WILD_BUILD/departures.jar")
java "${jvm[@]}" -Dsun.net.httpserver.nodelay=true board.standin.Feed $((port + 1)) &
feed=$!
if [ "${VARIANT:-flawed}" != flawed ]; then
    jvm+=(-Dsun.net.httpserver.nodelay=true)
fi
java "${jvm[@]}" -Djdk.httpclient.keepalive.timeout=20 board.Main "$port" &
board=$!
trap 'kill $board $feed 2> /dev/null; wait' EXIT
trap 'exit 143' TERM INT
wait $board
