#!/bin/sh
# run.sh [arguments of kanald]: installs what is needed (Debian 12, root), builds build/release/bin/kanald and starts it
# on 127.0.0.1:9092 with config/kanal.yaml.
set -eu
cd "$(dirname "$0")/.."
sh cmake/install_packages.sh build
[ -f build/release/build.ninja ] || cmake --preset release -DKANAL_TESTS=OFF >/dev/null
cmake --build --preset release --target kanald
exec build/release/bin/kanald --config config/kanal.yaml "$@"
