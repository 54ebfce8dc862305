#!/bin/bash
# Starts the stand-in of the boarding desk and the manifest service.
set -e

case "$VARIANT" in
flawed)
    limit_nofile=72
    delay=0.08
    ;;
mended)
    limit_nofile=4096
    delay=0.08
    ;;
healthy)
    limit_nofile=4096
    delay=0.2
    ;;
esac

DESK_DELAY_S=$delay python desk.py &
ulimit -n "$limit_nofile"
exec python app.py
