#!/usr/bin/env bash
set -eu
java -Dsun.net.httpserver.nodelay=true -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$WILD_BUILD" turnstile.OfficeStandin $(($1 + 1)) &
exec java -Xmx256m -XX:+UseSerialGC -cp "$WILD_BUILD" turnstile.Main "$1" "http://127.0.0.1:$(($1 + 1))"
