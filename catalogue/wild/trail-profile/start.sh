#!/usr/bin/env bash
set -eu
far=120ms
clubs=clubs.json
if [ "$VARIANT" = flawed ]; then clubs=clubs.before-renewal.json; fi
if [ "$VARIANT" = healthy ]; then far=200ms; fi
"$WILD_BUILD/terrain" -listen "127.0.0.1:$((PORT + 1))" -far "$far" &
exec "$WILD_BUILD/trailprofile" -listen "127.0.0.1:$PORT" -terrain "http://127.0.0.1:$((PORT + 1))" -clubs "$clubs"
