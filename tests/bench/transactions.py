#!/usr/bin/env python3
"""transactions.py [--kanald PATH] [--reps N] [--secs S] [--only kanald|kafka] [ROW]...: transactions, beside Apache Kafka 4.4.

    1p-1c … 100p-16c  transactions of one record of 100 bytes in each of 1, 10, 100 partitions, over one connection (for
                      latency) and over 16 (for the rate), each with a transactional id of its own, closed loop
    plain             non-transactional produces of 1 KiB, acks=1, over 4 connections: without, with and again without
                      10,000 transactions that are open in another topic

Protocol version 2, as current clients speak it: InitProducerId v5, Produce v12 (one request for all partitions), EndTxn v5.
A commit is timed from EndTxn sent to its answer, a transaction from its Produce sent to EndTxn's answer: Kafka answers
EndTxn before the markers are written and lets the next Produce wait for them, kanald writes them first, so it is the
transaction that compares. (Kafka lets it wait in steps of 20 ms, add.partitions.to.txn.retry.backoff.ms.) What is answered
with CONCURRENT_TRANSACTIONS or another error that clients retry is sent again after 20 ms (Kafka's clients wait 100 ms by
default: its figures are not made worse by that), within the time, and counted; any other error ends the run, and so does
a log that has not grown by each transaction's records and markers. The partitions of 16 connections differ as far as 100
suffice: with 1 partition each they share none, with 10 some, with 100 all.

The brokers take turns in one run. Machines differ and are shared: read ratios and CPU. Writes
build/bench/transactions.json. Asserts no figure. Needs g++, java and mvn (Kafka's jars; not with --only kanald).
"""
import argparse
import json
import shutil
import statistics
import struct
import subprocess
import sys
import time

import raw_client
import raw_log
from figures import OUT, ROOT, Kafka, Kanald, rss_mib, show

HERE = ROOT / "tests/bench"
LOAD = OUT / "transactions_load"
TOPIC, OPEN_TOPIC, PLAIN_TOPIC = "transactions-bench", "open-bench", "plain-bench"
PARTITIONS = 100  # of the first two
PLAIN_CONNECTIONS = 4
PLAIN_RECORD = 954  # bytes of value: a batch of 1 KiB
ROWS = {f"{partitions}p-{connections}c": (partitions, connections)
        for partitions in (1, 10, 100) for connections in (1, 16)}
WARM_UP = ("100p-16c", "1p-16c")  # run first, unmeasured: a JVM needs it, and the first write of a partition takes longer


def build():
    OUT.mkdir(parents=True, exist_ok=True)
    sources = [HERE / "transactions_load.cpp", HERE / "raw_frames.hpp"]
    if not LOAD.exists() or LOAD.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        subprocess.run(["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-o", LOAD, sources[0]], check=True)


def prepare(broker):
    """The topics; Kafka makes its transaction log when somebody asks for a coordinator."""
    with raw_client.connect(broker.address) as connection:
        for topic, partitions in ((TOPIC, PARTITIONS), (OPEN_TOPIC, PARTITIONS), (PLAIN_TOPIC, PLAIN_CONNECTIONS)):
            if errors := raw_client.create_topics(connection, [topic], partitions):
                sys.exit(f"{broker.kind}: {topic} cannot be made: {errors}")
        end = time.monotonic() + 120
        while True:
            raw_client.send(connection, 10, 1, raw_client.text("bench-0-0") + b"\1")
            error = struct.unpack_from(">h", raw_client.receive(connection), 4)[0]
            if error == 0:
                break
            if time.monotonic() > end:
                sys.exit(f"{broker.kind}: no transaction coordinator, error {error}")
            time.sleep(0.1)
    time.sleep(3)


class Runs:
    """Each with transactional ids of its own."""

    def __init__(self):
        self.count = 0

    def command(self, broker, topic, **numbers):
        self.count += 1
        host, port = broker.address.split(":")
        return [LOAD, host, port, str(broker.pid), topic, f"run={self.count}",
                *(f"{name}={value}" for name, value in numbers.items())]


def parsed(line):
    name, *values = line.split()
    return name, {key: float(value) for key, value in (part.split("=") for part in values)}


def report(broker, row, figures):
    words = " ".join(f"{key}={value:g}" for key, value in figures.items())
    print(f"  {broker.kind:7s} {row:9s} {words}", flush=True)


def run_load(broker, row, command):
    """The figures of the measured time, and how many there were in all."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    (_, figures), (_, total) = map(parsed, done.stdout.splitlines())
    report(broker, row, figures)
    return figures, int(total["done"])


def transactions(broker, runs, row, secs, warm):
    partitions, connections = ROWS[row]
    with raw_client.connect(broker.address) as connection:
        before = sum(raw_log.end_offsets(connection, TOPIC, PARTITIONS))
        command = runs.command(broker, TOPIC, mode=0, partitions=partitions, connections=connections,
                               topic_partitions=PARTITIONS, secs=secs, warm_s=warm)
        figures, total = run_load(broker, row, command)
        want, end = before + 2 * partitions * total, time.monotonic() + 60
        while (have := sum(raw_log.end_offsets(connection, TOPIC, PARTITIONS))) < want and time.monotonic() < end:
            time.sleep(0.05)
        if have != want:
            sys.exit(f"{broker.kind} {row}: {total} transactions, but the logs grew by {have - before}")
    return figures


def plain(broker, runs, secs, when):
    command = runs.command(broker, PLAIN_TOPIC, mode=1, connections=PLAIN_CONNECTIONS, secs=secs,
                           topic_partitions=PLAIN_CONNECTIONS, record=PLAIN_RECORD, warm_s=max(1, secs // 3))
    return run_load(broker, when, command)[0]


def beside(broker, runs, secs, count):
    """Plain produces without, with and without `count` open transactions."""
    result = {"before": plain(broker, runs, secs, "before")}
    memory = rss_mib(broker.pid)
    command = runs.command(broker, OPEN_TOPIC, mode=2, connections=16, topic_partitions=PARTITIONS, open=count)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        line = holder.stdout.readline()  # they are open now
        if not line:
            raise RuntimeError("no transactions could be opened")
        result["open"] = parsed(line)[1]
        report(broker, "open", result["open"])
        result["open_rss_mib"] = rss_mib(broker.pid) - memory
        try:
            result["during"] = plain(broker, runs, secs, "during")
        finally:
            rest, _ = holder.communicate()
        if holder.returncode:
            raise RuntimeError("the open transactions could not be ended: they were not open any more")
    result["aborted"] = parsed(rest.splitlines()[-1])[1]
    report(broker, "aborted", result["aborted"])
    result["after"] = plain(broker, runs, secs, "after")
    return result


def median(turns, key):
    return statistics.median(turn[key] for turn in turns)


def show_rows(results, rows):
    def both(row, key, digits=0, scale=1.0):
        return " / ".join(f"{median(results[kind, row], key) / scale:.{digits}f}" if (kind, row) in results else "-"
                          for kind in ("kanald", "kafka"))

    def ratio(row, key, inverse=False):
        if ("kanald", row) not in results or ("kafka", row) not in results:
            return ""
        ours, theirs = median(results["kanald", row], key), median(results["kafka", row], key)
        return f"{theirs / ours if inverse else ours / theirs:.1f}x" if ours and theirs else ""

    for row in rows:
        owed = " (owed >= 3x)" if ROWS[row][0] == 1 else ""
        show(f"{row}: transactions/s", both(row, "rate"), ratio(row, "rate") + owed)
        for name, key in (("commit", "commit_"), ("transaction", "")):
            show(f"{row}: {name} p50, ms", both(row, key + "p50_us", 2, 1000), ratio(row, key + "p50_us", True))
            show(f"{row}: {name} p99, ms", both(row, key + "p99_us", 2, 1000), ratio(row, key + "p99_us", True))
        show(f"{row}: broker CPU a transaction, us", both(row, "cpu_us"), ratio(row, "cpu_us", True))
        show(f"{row}: sent again, CONCURRENT_TRANSACTIONS", both(row, "concurrent"))
        show(f"{row}: sent again, others", both(row, "retries"))


def show_beside(results, count):
    for kind in ("kanald", "kafka"):
        if not (turns := results.get((kind, "plain"))):
            continue
        print(f"\nplain produces beside {count} open transactions, {kind}, without / with:")
        for name, key, scale, digits in (("requests/s", "rate", 1, 0), ("p50, ms", "p50_us", 1000, 3),
                                         ("p99, ms", "p99_us", 1000, 3), ("broker CPU a request, us", "cpu_us", 1, 1)):
            without = statistics.median((turn["before"][key] + turn["after"][key]) / 2 for turn in turns)
            during = statistics.median(turn["during"][key] for turn in turns)
            owed = " (owed: unharmed, 1.0)" if kind == "kanald" and key == "rate" else ""
            show(f"{kind}: {name}", f"{without / scale:.{digits}f} / {during / scale:.{digits}f}",
                 f"with is {during / without:.2f} of without{owed}" if without else "")
        show(f"{kind}: opened a second", f"{statistics.median(turn['open']['rate'] for turn in turns):.0f}")
        show(f"{kind}: memory an open transaction, KiB",
             f"{statistics.median(turn['open_rss_mib'] for turn in turns) * 1024 / count:.2f}")


def made(options):
    brokers = []
    if options.only != "kafka":
        shutil.rmtree(OUT / "transactions-kanald", ignore_errors=True)
        brokers.append(Kanald(options.kanald, OUT / "transactions-kanald"))
    if options.only != "kanald":
        subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
        shutil.rmtree(OUT / "transactions-kafka", ignore_errors=True)
        brokers.append(Kafka(ROOT / "build/kafka-tools/libs", OUT / "transactions-kafka"))
    return brokers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--secs", type=int, default=5, help="of each row")
    parser.add_argument("--warm", type=int, default=15, help="seconds that each broker is warmed up at first, twice")
    parser.add_argument("--open", type=int, default=10_000, help="transactions open beside plain produces")
    parser.add_argument("--only", choices=("kanald", "kafka"), help="no comparison")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join([*ROWS, "plain"]))
    options = parser.parse_args()
    rows = options.rows or [*ROWS, "plain"]
    if unknown := set(rows) - {*ROWS, "plain"}:
        parser.error("no such row: " + ", ".join(sorted(unknown)))
    build()
    brokers, results, runs = made(options), {}, Runs()
    try:
        for broker in brokers:
            broker.start()
            prepare(broker)
            print(f"  {broker.kind:7s} warms up", flush=True)
            for row in WARM_UP:
                transactions(broker, runs, row, 1, options.warm)
        for _ in range(options.reps):
            for row in rows:
                for broker in brokers:
                    if row == "plain":
                        turn = beside(broker, runs, options.secs, options.open)
                    else:
                        turn = transactions(broker, runs, row, options.secs, max(1, options.secs // 3))
                    results.setdefault((broker.kind, row), []).append(turn)
    finally:
        for broker in brokers:
            if broker.process is not None and broker.process.poll() is None:
                broker.end()
    print("\nmedians, kanald / Kafka:")
    show_rows(results, [row for row in ROWS if row in rows])
    show_beside(results, options.open)
    lines = [{"broker": kind, "row": row, "turns": turns} for (kind, row), turns in results.items()]
    (OUT / "transactions.json").write_text(json.dumps({"open": options.open, "rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
