#!/usr/bin/env bash
set -eu
python formulary_standin.py $(($1 + 1)) &
export FORMULARY_URL=http://127.0.0.1:$(($1 + 1)) REGISTER_DIR=$TMPDIR/register
mkdir -p "$REGISTER_DIR"
exec python app.py "$1"
