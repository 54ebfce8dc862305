#!/usr/bin/env bash
set -eu
think=60ms
if [ "$VARIANT" = healthy ]; then think=130ms; fi
"$WILD_BUILD/board" -listen "127.0.0.1:$((PORT + 1))" -think "$think" &
ulimit -n 1024 # as LimitNOFILE of the unit
exec "$WILD_BUILD/matinee" -listen "127.0.0.1:$PORT" -board "http://127.0.0.1:$((PORT + 1))" -films films.csv
