#!/bin/sh
case "${VARIANT:-flawed}" in
  flawed) heap=-Xmx100m ;; # as in the container's first deployment
  *) heap=-Xmx640m ;;
esac
exec java $heap -XX:+UseSerialGC -Dsun.net.httpserver.nodelay=true -cp "target/mill.jar:target/lib/*" mill.Claims "$1"
