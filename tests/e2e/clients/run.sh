#!/bin/sh
# run.sh KANALD | --kafka HOME | HOST:PORT [--part matrix|groups] [--only NAME,…] [--build-dir DIR]
# [--install-only]: the client matrix and consumer groups (README.md).
# Installs the clients into build/clients, never system-wide; the exit code is 0 if nothing failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null 2>&1; then
  if [ "${CI:-}" = true ]; then echo "FAIL: no python3"; echo "0 passed, 1 failed"; exit 1; fi
  echo "SKIP: no python3"; echo "0 passed, 0 failed, 1 skipped"; exit 0
fi
exec python3 "$here/matrix.py" "$@"
