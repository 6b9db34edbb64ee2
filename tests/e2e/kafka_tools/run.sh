#!/bin/sh
# Apache Kafka 4.4's command-line tools against kanald:
#   run.sh [path to kanald] [--kafka HOME] [--record] [--keep]
# --kafka tests a real Kafka, --record also stores what that answered in expected/. Fetches the tools
# by Maven (fetch.sh). The last line of the output is `N passed, N failed`.
exec python3 -B "$(dirname "$0")/kafka_tools.py" "$@"
