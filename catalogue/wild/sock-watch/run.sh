#!/bin/bash
# The probed hosts stand elsewhere and have limits of their own; the second part is the unit file's LimitNOFILE.
took=120ms
[[ $VARIANT == healthy ]] && took=200ms
"$WILD_BUILD/sockwatch" banner 127.0.0.1:$(($1 + 1)) $took &
hosts=$!
trap 'kill $hosts $service 2> /dev/null' EXIT
trap 'exit 143' TERM INT
case "$VARIANT" in
  mended | healthy) ulimit -n 4096 ;;
  *) ulimit -n 48 ;;
esac
"$WILD_BUILD/sockwatch" "$1" &
service=$!
wait $service
