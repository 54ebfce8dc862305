#!/usr/bin/env bash
set -eu
lab=100
if [ "$VARIANT" = healthy ]; then lab=170; fi
java -Xmx64m -XX:+UseSerialGC -Dsun.net.httpserver.nodelay=true -Dsun.net.httpserver.maxIdleConnections=400 \
    -cp "$WILD_BUILD/target/granary.jar" example.granary.LabStandIn $((PORT + 1)) "$lab" &
exec java -Xmx256m -Dsun.net.httpserver.nodelay=true -Djdk.httpclient.connectionPoolSize=200 \
    -cp "$WILD_BUILD/target/granary.jar" example.granary.Main "$PORT" "http://127.0.0.1:$((PORT + 1))"
