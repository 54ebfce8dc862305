#!/bin/sh
command -v javac > /dev/null || { echo "javac is missing: apt-get install default-jdk-headless" >&2; exit 1; }
set -e
mkdir -p "$WILD_BUILD/classes"
javac -Xlint:all -d "$WILD_BUILD/classes" src/desk/*.java
