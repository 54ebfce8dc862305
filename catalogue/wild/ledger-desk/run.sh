#!/bin/bash
set -e
port=$1
"$WILD_BUILD/standin" -port $((port + 1)) &
standin=$!
"$WILD_BUILD/ledgerd" -port "$port" -shards $((port + 1)) -consent $((port + 9)) &
desk=$!
trap 'kill $desk $standin 2> /dev/null; wait' EXIT
trap 'exit 143' TERM INT
wait $desk
