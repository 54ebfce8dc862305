#!/usr/bin/env bash
# Prints the Rust toolchain to use in place of the pinned one, or nothing where the pin can be followed.
#
# rustup downloads a pinned toolchain that is not installed, and without a way to its servers every cargo command
# then fails, although any toolchain from `rust-version` on builds Loadlens. So `make` takes the default toolchain.
set -u
cd "$(dirname "$0")/.."
[ -z "${RUSTUP_TOOLCHAIN:-}" ] || exit 0      # the user has chosen
command -v rustup >/dev/null || exit 0        # cargo without rustup does not read the pin
pinned=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
rustup toolchain list 2>/dev/null | grep -q "^$pinned-" && exit 0
default=$(cd / && rustup default 2>/dev/null | cut -d' ' -f1)
[ -n "$default" ] || exit 0
echo "Rust $pinned is pinned and not installed: using $default, whose format and lint may differ (rustup toolchain install $pinned)" >&2
echo "$default"
