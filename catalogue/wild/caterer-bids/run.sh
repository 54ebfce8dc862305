#!/bin/bash
FLAGS="-Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dsun.net.httpserver.nodelay=true -Dsun.net.httpserver.maxIdleConnections=1000"
java $FLAGS -cp "$WILD_BUILD" Caterers &
exec java $FLAGS -cp "$WILD_BUILD" CatererBids
