#!/usr/bin/env bash
# Names everything that the machine lacks, at once, with the command that installs it. Exit 2 if anything is missing.
set -u
cd "$(dirname "$0")/.."
rust_wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
missing=()

at_least() { # at_least HAVE WANT
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

if ! command -v python3 >/dev/null; then
    missing+=("python3 3.11 or newer|apt-get install python3 python3-venv")
else
    have=$(python3 -c 'import platform; print(platform.python_version())')
    at_least "$have" 3.11 || missing+=("python3 3.11 or newer (found $have)|apt-get install python3.11 python3.11-venv")
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=("python3's venv module|apt-get install python3-venv")
fi
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    missing+=("a Rust toolchain, $rust_wanted or newer|rustup toolchain install stable   (rustup: apt-get install rustup, or your system's)")
else
    have=$(rustc --version | cut -d' ' -f2)
    at_least "$have" "$rust_wanted" || missing+=("Rust $rust_wanted or newer (found $have)|rustup update stable")
fi
command -v cc >/dev/null || missing+=("a C compiler (cc)|apt-get install build-essential")
command -v make >/dev/null || missing+=("make|apt-get install make")

[ ${#missing[@]} -eq 0 ] && exit 0
echo "Loadlens cannot be built here yet. Missing:" >&2
for item in "${missing[@]}"; do
    printf '  %-48s %s\n' "${item%%|*}" "${item#*|}" >&2
done
exit 2
