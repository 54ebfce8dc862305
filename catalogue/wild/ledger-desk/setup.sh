#!/bin/sh
command -v go > /dev/null || { echo "go is missing: https://go.dev/dl" >&2; exit 1; }
set -e
mkdir -p "$WILD_BUILD"
go build -buildvcs=false -o "$WILD_BUILD/" ./cmd/...
