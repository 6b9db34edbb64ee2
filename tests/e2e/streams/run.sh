#!/bin/sh
# A Kafka Streams word count and a Kafka Connect standalone worker:
#   run.sh [path to kanald] | run.sh --kafka HOME      [--keep]
# Fetches both by Maven into build/streams. The last line is `N passed, N failed`.
exec python3 -B "$(dirname "$0")/streams_test.py" "$@"
