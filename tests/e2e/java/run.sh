#!/bin/sh
# The Java client with its defaults delivers and reads back 1,000,000 records:
#   run.sh [path to kanald] | run.sh --kafka HOME
# Fetches the client by Maven (../kafka_tools/fetch.sh). The last line is `N passed, N failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
built=$root/build/kafka-tools

for program in java javac mvn python3; do
  command -v "$program" > /dev/null && continue
  if [ "${CI:-}" = true ]; then
    printf 'FAIL: missing %s\n0 passed, 1 failed\n' "$program"
    exit 1
  fi
  printf 'SKIP: missing %s\n0 passed, 0 failed\n' "$program"
  exit 0
done

case "${1:-}" in
  "" | --kafka) ;;
  *) set -- --kanald "$1" ;;
esac
"$here/../kafka_tools/fetch.sh"
exec python3 -B "$here/../lib/broker.py" "$@" -- sh -c 'exec java -Xmx512m -XX:+UseSerialGC \
  -Dlog4j2.configurationFile="$1/log4j2.properties" -cp "$2/classes:$2/libs/*" \
  MillionRecords "$E2E_BROKER"' sh "$here/../kafka_tools" "$built"
