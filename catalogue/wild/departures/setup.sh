#!/bin/sh
command -v mvn > /dev/null || { echo "mvn is missing: apt-get install maven" >&2; exit 1; }
set -e
mkdir -p "$WILD_BUILD"
package() { mvn -q -B "$@" -DskipTests -Dbuild.dir="$WILD_BUILD/target" package; }
package -o 2> /dev/null > /dev/null || package
cp "$WILD_BUILD/target/departures.jar" "$WILD_BUILD/departures.jar"
