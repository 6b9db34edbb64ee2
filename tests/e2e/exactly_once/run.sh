#!/bin/sh
# Exactly once under fire: workers that copy, and random transactions, while they and the broker are
# killed (README.md):
#   run.sh [path to kanald] | run.sh --kafka HOME
# Short runs with seeds that are drawn; exactly_once.py and anomalies.py take more by their options.
# The last line of each is `N passed, N failed`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python3 -B "$here/exactly_once.py" "$@"
python3 -B "$here/anomalies.py" "$@"
