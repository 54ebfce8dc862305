#!/bin/bash
python bulletins.py &
exec uvicorn app:app --host 127.0.0.1 --port "$PORT" --backlog 512 --no-access-log
