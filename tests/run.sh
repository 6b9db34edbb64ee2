#!/bin/sh
# run.sh [arguments of ctest]: installs what is needed (Debian 12, root), builds with ASan and UBSan, runs every test.
set -eu
cd "$(dirname "$0")/.."
sh cmake/install_packages.sh test
cmake --preset dev >/dev/null
cmake --build --preset dev
exec ctest --preset dev "$@"
