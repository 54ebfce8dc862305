#!/usr/bin/env bash
set -eu
export PROVIDER_URL="http://127.0.0.1:$((PORT + 1))"
python provider.py $((PORT + 1)) &
exec python -m geodesk
