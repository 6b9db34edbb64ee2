#!/bin/sh
# install_packages.sh [build|test]: Debian 12's packages for building the broker, or for running its tests too.
# Does nothing where everything is there. Root is needed only if something is missing.
set -eu
build="g++ cmake ninja-build ccache pkg-config libboost1.81-dev libspdlog-dev libfmt-dev libyaml-cpp-dev librocksdb-dev
  libisal-dev libzstd-dev liblz4-dev libsnappy-dev zlib1g-dev"
test="libgtest-dev libgmock-dev librdkafka-dev kcat wamerican iso-codes python3 procps"
packages=$build
[ "${1:-build}" = test ] && packages="$build $test"
[ "${1:-build}" = ci ] && packages="$build $test clang-19 libclang-rt-19-dev libssl-dev make"
missing=""
for package in $packages; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
  echo "These packages are missing; run this as root, or install them:$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
