#!/usr/bin/env python3
"""durable.py [--kanald PATH] [--reps N] [--secs S] [--only kanald|kafka] [ROW]...: acknowledgements after a sync.

Topics with flush.messages=1 on kanald and on Apache Kafka 4.4, in turns in one run: 1, 10, 100 and 1,000 partitions with a
connection each and one request in flight on each, and 100 or 1,000 partitions in one request. A closed loop of 100
connections on few cores measures throughput: its latency is that of its own queue. So such a row comes in a second form,
"paced": an open loop over the same connections at 40 % of the rate that the broker gave just before, requests at even
distances, each timed from when it was due.

Beside each row the machine's floor, "one shared sync" (shared_sync.cpp): as many batches as the row has under way, of the
very size that it writes, a write each into a file whose blocks exist, one fdatasync; on the same disk, before and after
each broker's turn. A turn's p50 is held against the mean of the two p50s around it.

Records of 1 KiB. Machines differ and are shared: read ratios. Writes build/bench/durable.json. Asserts nothing. Needs g++,
java and mvn for Kafka and the load tool `rawbench`: $BENCH_TOOLS, by default ../shared/tools/bench beside the checkout.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

from figures import OUT, ROOT, Kafka, Kanald, show

BATCH = 1024
RECORD = BATCH - 72  # of value
FILES = 8192
ROWS = {  # name: partitions, connections, partitions in a request
    "1p-1c": (1, 1, 1),
    "1p-10c": (1, 10, 1),
    "10p-10c": (10, 10, 1),
    "100p-100c": (100, 100, 1),
    "1000p-1000c": (1000, 1000, 1),
    "100p-1req": (100, 1, 100),
    "1000p-1req": (1000, 1, 1000),
}


PACED = ("100p-100c", "1000p-1000c")
PART = 0.4  # of the closed loop's rate that the paced form has
SYNC_ROUNDS = {1: 400, 10: 400, 100: 300, 1000: 100}  # by batches


def under_way(row):
    """Batches that a sync can share at most."""
    _, connections, together = ROWS[row]
    return connections * together


def shared_sync(batches):
    """Milliseconds of one shared sync: (p50, p99)."""
    command = [OUT / "shared_sync", OUT / "floor", str(batches), str(batch_bytes()), str(SYNC_ROUNDS[batches])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    p50, p99 = map(float, done.stdout.split())
    print(f"  floor   {batches:4d} batches, one sync: p50_ms={p50:.2f} p99_ms={p99:.2f}", flush=True)
    return p50, p99


def batch_bytes():
    """What rawbench makes of RECORD: a header of 61 bytes, one record with its length before it."""
    record = 1 + 1 + 1 + 1 + 2 + RECORD + 1
    return 61 + 2 + record


def build(source, *options):
    program = OUT / source.stem
    OUT.mkdir(parents=True, exist_ok=True)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-O2", "-std=c++20", *options, "-o", program, source], check=True)
    return program


def build_tool(tools):
    source = tools / "rawbench.cpp"
    if not source.exists():
        sys.exit(f"no load tool in {tools}: set BENCH_TOOLS")
    build(ROOT / "tests/bench/shared_sync.cpp", "-Wall", "-Wextra")
    return build(source, "-pthread")


def run_row(tool, broker, row, rep, seconds, rate=0.0):
    """One turn; `rate`: requests a second of an open loop, else a closed one."""
    partitions, connections, together = ROWS[row]
    command = [str(tool), "produce", "--broker", broker.address, "--topic", f"durable-{row}-{rep}",
               "--partitions", str(partitions), "--conns", str(connections), "--parts-per-request", str(together),
               "--batch", str(BATCH), "--record", str(RECORD), "--acks", "-1", "--inflight", "1", "--secs", str(seconds),
               "--warmup", str(seconds / 2), "--bytes", "100G", "--pid", str(broker.pid),
               "--topic-config", "flush.messages=1"]
    if rate:
        command += ["--rate", f"{rate * together * batch_bytes() / 1e6:.6f}"]
    name = f"{row}{' paced' if rate else ''}"
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"  {broker.kind:7s} {name:17s} FAILED: {done.stderr.strip()[:200]}", flush=True)
        return None
    result = json.loads(done.stdout)
    if result["batch_bytes"] != batch_bytes():
        sys.exit(f"a batch has {result['batch_bytes']} bytes, the floor {batch_bytes()}")
    result["acks_s"] = result["requests_s"] * together
    print(f"  {broker.kind:7s} {name:17s} requests/s={result['requests_s']:.0f} acks/s={result['acks_s']:.0f} "
          f"p50_ms={result['ack_p50_us'] / 1000:.2f} p99_ms={result['ack_p99_us'] / 1000:.2f} "
          f"cpu_us={result['broker_cpu_us_per_request']:.0f} other_cores={result.get('other_cores', 0):.2f}"
          f"{' OVERLOADED' if result.get('overloaded') else ''}", flush=True)
    return result


def add_floor(result, *around):
    """Notes the p50 of a shared sync around a turn, and the turn's own in it."""
    if result:
        result["floor_p50_ms"] = statistics.mean(p50 for p50, _ in around)
        result["p50_floors"] = result["ack_p50_us"] / 1000 / result["floor_p50_ms"]


def run_turns(tool, brokers, row, rep, seconds):
    """{(kind, name): turn} of one row, in both forms if it has two, with the floor before and after each."""
    found, before = {}, shared_sync(under_way(row))
    for broker in brokers:
        closed = found[broker.kind, row] = run_row(tool, broker, row, rep, seconds)
        after = shared_sync(under_way(row))
        add_floor(closed, before, after)
        if row in PACED and closed:
            before = after
            paced = run_row(tool, broker, row, rep, seconds, PART * closed["requests_s"])
            after = shared_sync(under_way(row))
            add_floor(paced, before, after)
            found[broker.kind, f"{row} paced"] = paced
        before = after
    return found


class Summary:
    """Medians over the turns of a row."""

    def __init__(self, results):
        self.results = results

    def median(self, kind, row, key):
        found = [turn[key] for turn in self.results.get((kind, row), []) if turn]
        return statistics.median(found) if found else None

    def both(self, row, key, scale=1.0, digits=0):
        values = [self.median(kind, row, key) for kind in ("kanald", "kafka")]
        return " / ".join("-" if value is None else f"{value / scale:.{digits}f}" for value in values)

    def ratio(self, row, key, inverse=False):
        ours, theirs = self.median("kanald", row, key), self.median("kafka", row, key)
        return f"{theirs / ours if inverse else ours / theirs:.1f}x" if ours and theirs else ""

    def show_latency(self, row, target=""):
        show(f"{row}: p50, ms", self.both(row, "ack_p50_us", 1000, 2), self.ratio(row, "ack_p50_us", True) + target)
        show(f"{row}: p99, ms", self.both(row, "ack_p99_us", 1000, 2), self.ratio(row, "ack_p99_us", True))
        batches = under_way(row.split()[0])
        show(f"{row}: one shared sync of {batches}, p50, ms", self.both(row, "floor_p50_ms", 1, 2))

    def show_row(self, row):
        targets = {"100p-100c": ", owed >= 8x", "1p-1c": ", target 1.3x"}
        show(f"{row}: acks/s", self.both(row, "acks_s"), self.ratio(row, "acks_s") + targets.get(row, ""))
        self.show_latency(row, ", owed >= 20x" if row == "100p-1req" else "")
        show(f"{row}: p50 in shared syncs", self.both(row, "p50_floors", 1, 2),
             "kanald owed <= 2" + (", or paced:" if row in PACED else ""))
        if row not in PACED:
            return
        paced = f"{row} paced"
        show(f"{paced}: acks/s, {PART:.0%} of its own each", self.both(paced, "acks_s"))
        self.show_latency(paced)
        show(f"{paced}: p50 in shared syncs", self.both(paced, "p50_floors", 1, 2), "kanald owed <= 2")


def summary(results, rows):
    shown = Summary(results)
    print("\nmedians, kanald / Kafka:")
    for row in rows:
        if any(any(results.get((kind, row), [])) for kind in ("kanald", "kafka")):
            shown.show_row(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--secs", type=float, default=4)
    parser.add_argument("--only", choices=("kanald", "kafka"), help="no comparison")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    options = parser.parse_args()
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error("no such row: " + ", ".join(sorted(unknown)))
    tools = pathlib.Path(os.environ.get("BENCH_TOOLS", ROOT.parent / "shared/tools/bench"))
    tool = build_tool(tools)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, FILES), hard), hard))
    for kind in ("durable-kafka", "durable-kanald"):
        shutil.rmtree(OUT / kind, ignore_errors=True)
    brokers = []
    if options.only != "kafka":
        brokers.append(Kanald(options.kanald, OUT / "durable-kanald"))
    if options.only != "kanald":
        subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
        brokers.append(Kafka(ROOT / "build/kafka-tools/libs", OUT / "durable-kafka"))
    results, rows = {}, [row for row in ROWS if row in (options.rows or ROWS)]
    try:
        for broker in brokers:
            broker.start()
        for rep in range(options.reps):
            for row in rows:
                for name, turn in run_turns(tool, brokers, row, rep, options.secs).items():
                    results.setdefault(name, []).append(turn)
    finally:
        for broker in brokers:
            if broker.process is not None and broker.process.poll() is None:
                broker.end()
    summary(results, rows)
    lines = [{"broker": kind, "row": row, "turns": turns} for (kind, row), turns in results.items()]
    (OUT / "durable.json").write_text(json.dumps({"rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
