#!/bin/sh
set -e
npm ci
mkdir -p "$WILD_BUILD"
openssl req -x509 -newkey rsa:4096 -nodes -keyout "$WILD_BUILD/key.pem" -out "$WILD_BUILD/cert.pem" -days 3650 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
