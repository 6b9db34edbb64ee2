#!/usr/bin/env python3
"""groups_start.py [--kanald PATH] [--reps N] [--only KIND] [--groups N] [--partitions N]: starts with many groups stored.

100,000 groups with 300,000 offsets, then starts after SIGTERM and after kill -9, kanald beside Apache Kafka 4.4 in turns:
the first answer of the process, the moment when groups all over the range are answered with what they committed, CPU and
memory by then. Read the ratios and the CPU, not wall clocks: machines differ and are shared. A wrong offset ends the run;
no figure does. Needs java and mvn (Kafka's jars), none of them with --only kanald.
"""
import argparse
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

import raw_client
from figures import OUT, ROOT, Kafka, Kanald, cpu_seconds, rss_mib, show

TOPIC = "groups-start"
WINDOW = 500  # commits that are under way
SAMPLES = 1000  # groups that are asked for after a start
NOT_YET = (14, 15, 16)  # loading, no coordinator, not the coordinator
FIGURES = (("first answer", "first_ms", "ms"), ("groups answered", "groups_ms", "ms"),
           ("CPU by then", "cpu_ms", "ms"), ("memory by then", "rss_mib", "MiB"))


def group_name(number):
    return raw_client.text(f"group-{number:06}")


def offset_of(number, partition):
    return number * 10 + partition


def commit_body(number, partitions):
    """OffsetCommit v2 from outside a group."""
    body = group_name(number) + struct.pack(">i", -1) + raw_client.text("") + struct.pack(">qi", -1, 1)
    body += raw_client.text(TOPIC) + struct.pack(">i", partitions)
    for partition in range(partitions):
        body += struct.pack(">iqh", partition, offset_of(number, partition), 0)
    return body


def commit_errors(answer, partitions):
    at = 4 + 2 + len(TOPIC) + 4
    return [code for partition in range(partitions)
            if (code := struct.unpack_from(">ih", answer, at + 6 * partition)[1])]


def committed(connection, number, partitions):
    """OffsetFetch v1: {partition: offset}, or nothing while the group is being loaded."""
    body = group_name(number) + struct.pack(">i", 1) + raw_client.text(TOPIC) + struct.pack(">i", partitions)
    raw_client.send(connection, 9, 1, body + struct.pack(f">{partitions}i", *range(partitions)))
    answer = raw_client.receive(connection)
    at, found = 4 + 2 + len(TOPIC) + 4, {}
    for _ in range(partitions):
        index, offset, metadata = struct.unpack_from(">iqh", answer, at)
        (code,) = struct.unpack_from(">h", answer, at + 14 + max(metadata, 0))
        at += 16 + max(metadata, 0)
        if code in NOT_YET:
            return {}
        if code:
            sys.exit(f"group {number} is answered with error {code}")
        found[index] = offset
    return found


def until_committed(connection, number, partitions):
    want = {partition: offset_of(number, partition) for partition in range(partitions)}
    while not (have := committed(connection, number, partitions)):
        time.sleep(0.001)
    if have != want:
        sys.exit(f"group {number} has {have}, not {want}")


def prepare(broker, groups, partitions):
    """Seconds that the commits took."""
    with raw_client.connect(broker.address) as connection:
        raw_client.create_topics(connection, [TOPIC], partitions)
        while True:  # Kafka makes its offsets topic when somebody asks for a coordinator
            raw_client.send(connection, 10, 0, group_name(0))
            if struct.unpack_from(">h", raw_client.receive(connection))[0] == 0:
                break
            time.sleep(0.1)
        begin, under_way = time.monotonic(), []
        turn = list(range(groups))
        while turn or under_way:
            while turn and len(under_way) < WINDOW:
                under_way.append(turn.pop())
                raw_client.send(connection, 8, 2, commit_body(under_way[-1], partitions))
            number = under_way.pop(0)
            errors = commit_errors(raw_client.receive(connection), partitions)
            if any(code in NOT_YET for code in errors):
                turn.append(number)
            elif errors:
                sys.exit(f"group {number}: commit failed with {errors}")
        return time.monotonic() - begin


def one_start(broker, groups, partitions):
    """The figures of one start."""
    begin = time.monotonic()
    first_ms = broker.start()
    with raw_client.connect(broker.address) as connection:
        for number in range(0, groups, max(1, groups // SAMPLES)):
            until_committed(connection, number, partitions)
        until_committed(connection, groups - 1, partitions)
    return {"first_ms": first_ms, "groups_ms": (time.monotonic() - begin) * 1000,
            "cpu_ms": cpu_seconds(broker.pid) * 1000, "rss_mib": rss_mib(broker.pid)}


def made(options):
    brokers = []
    if options.only != "kanald":
        subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
        shutil.rmtree(OUT / "start-kafka", ignore_errors=True)
        brokers.append(Kafka(ROOT / "build/kafka-tools/libs", OUT / "start-kafka"))
    if options.only != "kafka":
        shutil.rmtree(OUT / "start-kanald", ignore_errors=True)
        brokers.append(Kanald(options.kanald, OUT / "start-kanald"))
    return brokers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--only", choices=("kanald", "kafka"), help="no comparison")
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=3)
    options = parser.parse_args()
    brokers = made(options)
    ends = {"SIGTERM": signal.SIGTERM, "kill -9": signal.SIGKILL}
    results = {(broker.kind, name): [] for broker in brokers for name in ends}
    running = None
    try:
        for broker in brokers:
            running = broker
            broker.start()
            took = prepare(broker, options.groups, options.partitions)
            print(f"{broker.kind:7s} {options.groups} commits of {options.partitions} offsets in {took:.1f} s", flush=True)
            broker.end()
        for _ in range(options.reps):
            for broker in brokers:
                running = broker
                one_start(broker, options.groups, options.partitions)
                for name, how in ends.items():
                    broker.end(how)
                    results[broker.kind, name].append(one_start(broker, options.groups, options.partitions))
                broker.end()
    finally:
        if running is not None and running.process is not None and running.process.poll() is None:
            running.end(signal.SIGKILL)
    kinds = sorted({broker.kind for broker in brokers})
    print(f"\nmedians of {options.reps}, {' / '.join(kinds)}:")
    for name in ends:
        for label, key, unit in FIGURES:
            values = [statistics.median(each[key] for each in results[kind, name]) for kind in kinds]
            show(f"after {name}: {label}", " / ".join(f"{value:.0f}" for value in values) + f" {unit}")


if __name__ == "__main__":
    main()
