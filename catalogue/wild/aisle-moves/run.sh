#!/usr/bin/env bash
set -eu
"$WILD_BUILD/release/erp-standin" $(($1 + 1)) &
exec "$WILD_BUILD/release/aisle-moves" "$1" "http://127.0.0.1:$(($1 + 1))"
