#!/usr/bin/env bash
set -eu
python bank_standin.py $(($1 + 1)) &
export BANK_URL=http://127.0.0.1:$(($1 + 1))
exec uvicorn screening.main:app --host 127.0.0.1 --port "$1" --no-access-log --log-level warning
