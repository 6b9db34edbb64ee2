#!/bin/bash
# Asks the first listener for its ApiVersions (version 0) and looks for the answer: healthy is who
# answers, not who merely has the port open. Debian's bash is all it needs.
set -eu
read -r address < /tmp/kanal.ready
host=${address%:*}
case $host in
  0.0.0.0 | "[::]") host=127.0.0.1 ;;
esac
exec 3<> "/dev/tcp/$host/${address##*:}"
# Length 16, key 18, version 0, correlation id 0x6b616e61, client id "health".
printf '\0\0\0\20\0\22\0\0kana\0\6health' >&3
answer=$(timeout 2 head -c 8 <&3 | tail -c 4)
[ "$answer" = kana ]
