#!/usr/bin/env bash
set -eu
export ERL_CRASH_DUMP_SECONDS=0
erl -noshell -noinput +sbwt none -pa "$WILD_BUILD" -s planner_standin main $(($1 + 1)) $(($1 + 2)) &
exec erl -noshell -noinput +sbwt none -pa "$WILD_BUILD" \
  -slots port "$1" planner $(($1 + 1)) old_planner $(($1 + 2)) sample 0.07 -s slots_app main
