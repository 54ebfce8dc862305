#!/usr/bin/env bash
set -eu
think=60ms
if [ "$VARIANT" = healthy ]; then think=110ms; fi
"$WILD_BUILD/reshost" -listen "127.0.0.1:$((PORT + 1))" -think "$think" &
exec "$WILD_BUILD/ferrylink" -listen "127.0.0.1:$PORT" -host "127.0.0.1:$((PORT + 1))"
