#!/bin/bash
# Asks the first listener for its ApiVersions (version 0) and looks for the answer: healthy is who
# answers, not who merely has the port open. Debian's bash is all it needs.
set -eu
IFS=: read -r _ port < /tmp/kanal.ready
exec 3<> "/dev/tcp/127.0.0.1/$port"
# Length 16, key 18, version 0, correlation id 0x6b616e61, client id "health".
printf '\0\0\0\20\0\22\0\0kana\0\6health' >&3
answer=$(timeout 2 head -c 8 <&3 | tail -c 4)
[ "$answer" = kana ]
