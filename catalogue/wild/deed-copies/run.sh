#!/usr/bin/env bash
set -eu
node archive-standin.js $(($1 + 1)) &
export ARCHIVE_URL=http://127.0.0.1:$(($1 + 1))
exec node server.js "$1"
