#!/usr/bin/env bash
set -eu
export TIMETABLE_URL="http://127.0.0.1:$((PORT + 1))" LINE_URL="http://127.0.0.1:$((PORT + 2))"
python standins/timetable.py $((PORT + 1)) &
python standins/ferry_line.py $((PORT + 2)) &
exec uvicorn quotes.app:app --host 127.0.0.1 --port "$PORT" --backlog 512 --no-access-log --log-level warning
