#!/bin/sh
# Real input through kcat with every codec, read back after kill -9:
#   run.sh [path to kanald] [--kafka HOME] [--keep]
# Installs nothing (tests/run.sh does: kcat, python3, wamerican, iso-codes). The last line of the
# output is `N passed, N failed`.
exec python3 -B "$(dirname "$0")/real_input.py" "$@"
