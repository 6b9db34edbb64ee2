#!/bin/bash
# Builds the image and tries it where there is no Docker engine and no image registry: Debian's
# buildah (chroot isolation, vfs storage, docker format) on a root made by debootstrap.
#   docker/try.sh [WORKDIR]     WORKDIR (default: a temporary one) keeps base system and images
# Needs root, buildah, debootstrap, kcat. What it cannot show: ports published by an engine, the
# engine running the health check by itself, compose. The last line is `N passed, N failed`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
passed=0 failed=0

finish() {
  [ -z "${daemon:-}" ] || kill -9 "$daemon" 2> /dev/null || true
  [ $# -eq 0 ] || echo "FAIL  $*"
  [ -n "${kept:-}" ] || rm -rf "$work"
}
[ $# -eq 0 ] || kept=yes
trap finish EXIT

check() {  # check NAME COMMAND...
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    failed=$((failed + 1))
    echo "FAIL  $name"
  fi
}

for program in buildah debootstrap kcat; do
  command -v $program > /dev/null && continue
  [ "${CI:-}" = true ] && verdict=FAIL || verdict=SKIP
  echo "$verdict: missing $program"
  [ $verdict = SKIP ] && { echo "0 passed, 0 failed"; exit 0; }
  echo "0 passed, 1 failed"
  exit 1
done

buildah_here() {
  local command=$1
  shift
  buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$command" "$@"
}

make_base() {
  [ -e "$work/base/etc/debian_version" ] ||
    debootstrap --variant=minbase bookworm "$work/base" > "$work/debootstrap.log"
  rm -rf "$work/base/var/cache/apt/archives"/*.deb
  buildah_here inspect --type image localhost/kanal-base > /dev/null 2>&1 && return
  local container
  container=$(buildah_here from scratch)
  buildah_here add -q "$container" "$work/base" / > /dev/null
  buildah_here commit -q "$container" localhost/kanal-base > /dev/null
  buildah_here rm "$container" > /dev/null
}

build() {  # build TARGET IMAGE
  buildah_here build -q --isolation chroot --format docker --pull-never \
    --build-arg BASE=localhost/kanal-base --target "$1" -t "localhost/$2" \
    -f "$root/docker/Dockerfile" "$root" > "$work/build.$1.log" 2>&1 ||
    { tail -40 "$work/build.$1.log"; return 1; }
}

image_says() {  # image_says TEMPLATE TEXT
  [ "$(buildah_here inspect --type image --format "{{$1}}" localhost/kanal)" = "$2" ]
}

run_in() {  # run_in CONTAINER [OPTION...] -- COMMAND...
  local container=$1
  shift
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  buildah_here run --isolation chroot "${options[@]}" "$container" "$@"
}

kanald_below() {  # the pid of the kanald that runs below PID, once there is one
  local pid=$1 child
  for child in $(cat /proc/"$pid"/task/*/children 2> /dev/null); do
    if [ "$(cat /proc/"$child"/comm 2> /dev/null)" = kanald ]; then
      echo "$child"
      return
    fi
    kanald_below "$child"
  done
}

entry_point=(kanald --config /etc/kanal/kanal.yaml --data-dir /data --ready-file /tmp/kanal.ready)

start() {  # start CONTAINER [OPTION...]: the image's entry point; sets port, daemon
  rm -rf "$work/tmp"
  install -d -o 10001 -g 10001 "$work/data" "$work/tmp"
  run_in "$1" -v "$work/data:/data" -v "$work/tmp:/tmp" "${@:2}" -- "${entry_point[@]}" \
    >> "$work/kanald.log" 2>&1 &
  runner=$!
  local tries=0
  until [ -s "$work/tmp/kanal.ready" ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] && kill -0 $runner 2> /dev/null || { tail -20 "$work/kanald.log"; return 1; }
    sleep 0.1
  done
  daemon=$(kanald_below $runner)
  port=$(head -1 "$work/tmp/kanal.ready")
  port=${port##*:}
}

stop() {
  kill -TERM "$daemon"
  local code=0
  wait $runner || code=$?
  daemon=
  return $code
}

runs_as() {
  [ "$(stat -c %u "/proc/$daemon")" = "$1" ]
}

healthy() {
  run_in "$1" -v "$work/tmp:/tmp" -- kanal-healthcheck
}

tour() {
  run_in "$1" -- kanal-tour "127.0.0.1:$port" > "$work/tour.log" 2>&1 &&
    grep -q 'venice = glass' "$work/tour.log" || { cat "$work/tour.log"; return 1; }
}

refused() {  # without an address to hand out
  run_in "$1" --env KANAL_LISTENERS=PLAINTEXT://0.0.0.0:9092 -- kanald > "$work/refused.log" 2>&1
  [ $? -ne 0 ] && grep -q KANAL_ADVERTISED_LISTENERS "$work/refused.log"
}

set -m
echo "building in $work"
make_base
check "the image builds" build runtime kanal
check "the image of the tour builds" build tour kanal-tour
check "not root" image_says .Docker.Config.User 10001:10001
check "a volume at /data" image_says .Docker.Config.Volumes 'map[/data:{}]'
check "a health check" image_says .Docker.Config.Healthcheck.Test '[CMD kanal-healthcheck]'
check "the entry point tried here" image_says .Docker.Config.Entrypoint "[${entry_point[*]}]"
kanal=$(buildah_here from --pull-never localhost/kanal)
kcat=$(buildah_here from --pull-never localhost/kanal-tour)
check "all libraries are there" \
  run_in "$kanal" -- sh -c '! ldd /usr/local/bin/kanald | grep "not found"'
check "refused without an address to hand out, saying what to set" refused "$kanal"
listen=(--env KANAL_LISTENERS=PLAINTEXT://0.0.0.0:0
        --env KANAL_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:0)
check "starts, configured by its environment" start "$kanal" "${listen[@]}"
check "as user 10001" runs_as 10001
check "healthy" healthy "$kanal"
check "a tour with kcat from a second container" tour "$kcat"
check "SIGTERM ends it with 0" stop
check "not healthy then" eval '! healthy "$kanal" 2> /dev/null'
printf 'listeners: [{name: PLAINTEXT, bind: "0.0.0.0:0", advertised: "127.0.0.1:0"}]\n' \
  > "$work/kanal.yaml"
check "starts, configured by a mounted file" \
  start "$kanal" -v "$work/kanal.yaml:/etc/kanal/kanal.yaml:ro"
check "the data is still there" \
  eval '[ "$(kcat -b "127.0.0.1:$port" -C -t tour -o beginning -e -q | wc -l)" = 3 ]'
check "SIGTERM ends it with 0 again" stop
buildah_here images | sed 's/^/      /'
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
