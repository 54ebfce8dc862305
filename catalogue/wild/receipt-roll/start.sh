#!/usr/bin/env bash
set -eu
card=120ms
if [ "$VARIANT" = healthy ]; then card=220ms; fi
"$WILD_BUILD/standins" -acquirer "127.0.0.1:$((PORT + 1))" -signer "127.0.0.1:$((PORT + 2))" -card "$card" &
exec "$WILD_BUILD/receiptroll" -listen "127.0.0.1:$PORT" -db "$TMPDIR/receipts.db" \
  -acquirer "http://127.0.0.1:$((PORT + 1))" -signer "http://127.0.0.1:$((PORT + 2))"
