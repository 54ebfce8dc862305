#!/bin/sh
command -v nginx > /dev/null || { echo "nginx is missing: apt-get install nginx-light" >&2; exit 1; }
set -e
npm ci --no-audit --no-fund
mkdir -p "$WILD_BUILD"
openssl req -x509 -newkey rsa:4096 -nodes -days 3650 -subj /CN=origin.internal \
  -keyout "$WILD_BUILD/origin.key" -out "$WILD_BUILD/origin.crt" 2>/dev/null
