#!/bin/sh
# as the init script of 2009 has it
if [ "$VARIANT" = flawed ]; then
    ulimit -n 120
else
    ulimit -n 1024
fi
exec python filedrop.py "$1"
