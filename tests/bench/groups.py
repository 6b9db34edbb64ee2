#!/usr/bin/env python3
"""groups.py [--kanald PATH] [--reps N] [NAME=VALUE]...: 1,000 groups of 10 members, kanald beside Apache Kafka 4.4.

Every member has a connection of its own (two share one where files are few) and a heartbeat every 3 s; then 10,000
commits a second. The brokers take turns in one run. Read the CPU a request and the ratios, not wall clocks: machines
differ and are shared. NAME=VALUE goes to groups_load.cpp (groups, members, per_connection, interval_ms, warm_s, beat_s,
commit_rate, commit_warm_s, commit_s). Asserts nothing. Needs g++, java and mvn.
"""
import argparse
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time

import raw_client
from figures import OUT, ROOT, Kafka, Kanald, show

HERE = ROOT / "tests/bench"
LOAD = OUT / "groups_load"
TOPIC = "groups-bench"
FILES = 65536


def build():
    OUT.mkdir(parents=True, exist_ok=True)
    sources = [HERE / "groups_load.cpp", HERE / "raw_frames.hpp"]
    if not LOAD.exists() or LOAD.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        subprocess.run(["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-o", LOAD, sources[0]], check=True)


def members_per_connection():
    """One, if there may be as many files: kanald keeps half of them for its own. Children inherit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, FILES), max(hard, FILES)))
        return 1
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    shared = 1 if hard >= 21000 else 2 if hard >= 11000 else 10
    print(f"{hard} files: members of {shared} group(s) share a connection", flush=True)
    return shared


def prepare(broker):
    """The topic of the commits; Kafka makes its offsets topic when somebody asks for a coordinator."""
    with raw_client.connect(broker.address) as connection:
        raw_client.create_topics(connection, [TOPIC], 10)
        while True:
            raw_client.send(connection, 10, 0, raw_client.text("bench-0-0"))
            if struct.unpack_from(">h", raw_client.receive(connection))[0] == 0:
                break
            time.sleep(0.1)
    time.sleep(3)


def run_load(broker, run, extra):
    """{phase: {name: value}} of one turn."""
    host, port = broker.address.split(":")
    done = subprocess.run([LOAD, host, port, str(broker.pid), TOPIC, f"run={run}", *extra], stdout=subprocess.PIPE,
                          check=True)
    phases = {}
    for line in done.stdout.decode().splitlines():
        print(f"  {broker.kind:7s} {line}", flush=True)
        name, *values = line.split()
        phases[name] = {key: float(value) for key, value in (part.split("=") for part in values)}
    return phases


def summary(results):
    def median(kind, phase, key):
        return statistics.median(turn[phase][key] for turn in results[kind])

    def both(phase, key, unit, digits=1):
        return " / ".join(f"{median(kind, phase, key):.{digits}f}" for kind in ("kanald", "kafka")) + " " + unit

    print("\nmedians, kanald / Kafka:")
    ratio = median("kanald", "heartbeats", "cpu_us") / median("kafka", "heartbeats", "cpu_us")
    show("broker CPU a heartbeat", both("heartbeats", "cpu_us", "us"), f"{ratio:.2f} of Kafka's, target <= 1")
    show("heartbeats a second", both("heartbeats", "rate", "/s", 0))
    show("errors in heartbeats", both("heartbeats", "errors", "", 0), "0")
    show("heartbeat p99", both("heartbeats", "p99_us", "us", 0))
    show("commits a second, held", both("commits", "rate", "/s", 0), "10000")
    show("commits that failed or could not be sent in time",
         " / ".join(f"{median(kind, 'commits', 'errors') + median(kind, 'commits', 'skipped'):.0f}"
                    for kind in ("kanald", "kafka")), "0")
    show("broker CPU a commit", both("commits", "cpu_us", "us"))
    show("commit p50", both("commits", "p50_us", "us", 0))
    show("commit p99", both("commits", "p99_us", "us", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--only", choices=("kanald", "kafka"), help="no comparison")
    parser.add_argument("load", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args()
    subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
    build()
    load = [f"per_connection={members_per_connection()}", *options.load]
    for kind in ("groups-kafka", "groups-kanald"):
        shutil.rmtree(OUT / kind, ignore_errors=True)
    brokers = []
    if options.only != "kanald":
        brokers.append(Kafka(ROOT / "build/kafka-tools/libs", OUT / "groups-kafka"))
    if options.only != "kafka":
        brokers.append(Kanald(options.kanald, OUT / "groups-kanald"))
    results = {broker.kind: [] for broker in brokers}
    try:
        for broker in brokers:
            broker.start()
            prepare(broker)
        for rep in range(options.reps):
            for broker in brokers:
                results[broker.kind].append(run_load(broker, rep, load))
    finally:
        for broker in brokers:
            if broker.process is not None and broker.process.poll() is None:
                broker.end()
    if len(brokers) == 2:
        summary(results)


if __name__ == "__main__":
    sys.exit(main())
