#!/usr/bin/env bash
seconds=0.4; [ "$VARIANT" = healthy ] && seconds=0.6
python tax_stub.py $((PORT + 1)) $seconds &
exec gunicorn -c gunicorn.conf.py invoices:app
