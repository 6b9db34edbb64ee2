#!/bin/sh
# A tour with kcat: tour.sh [HOST:PORT] (default $TOUR_BROKER). Shows the broker, writes, reads.
set -eu
broker=${1:-${TOUR_BROKER:?name the broker as HOST:PORT}}
topic=tour
run() {
  echo "\$ kcat -b $broker $*" >&2
  kcat -b "$broker" "$@"
}
echo "# 1. The topic is made when it is first asked for."
run -L -t "$topic"
echo "# 2. Three records with keys, compressed."
printf 'amsterdam:tulips\nbruges:lace\nvenice:glass\n' | run -P -t "$topic" -K : -z zstd
echo "# 3. And back, with where they lie."
run -C -t "$topic" -o beginning -e -q -f '%t/%p@%o  %k = %s\n'
echo "# 4. The end of the log."
run -Q -t "$topic:0:-1"
