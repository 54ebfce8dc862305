#!/usr/bin/env bash
set -eu
node standins/lift-control.js $(($1 + 1)) &
node standins/guests.js $(($1 + 2)) &
export LIFT_CONTROL=http://127.0.0.1:$(($1 + 1)) GUESTS=http://127.0.0.1:$(($1 + 2))
exec node server.js "$1"
