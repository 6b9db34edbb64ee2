#!/bin/sh
# Lays the jars of Apache Kafka 4.4's tools (pom.xml) into build/kafka-tools/libs and compiles the
# Java programs of tests/e2e against them into build/kafka-tools/classes. Does nothing when both are
# up to date. Needs mvn, javac. The registry is the one Maven is set up with.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$root/build/kafka-tools
mkdir -p "$out"

if ! cmp -s "$here/pom.xml" "$out/fetched.pom.xml"; then
  rm -rf "$out/libs"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$out/libs" -DincludeScope=runtime
  cp "$here/pom.xml" "$out/fetched.pom.xml"
fi

sources=$(find "$here" "$here/../java" -name "*.java" | sort)
if ! cat $sources | cmp -s - "$out/compiled.java"; then
  rm -rf "$out/classes"
  javac -Xlint:all,-classfile,-processing -Werror -d "$out/classes" -cp "$out/libs/*" $sources
  cat $sources > "$out/compiled.java"
fi
