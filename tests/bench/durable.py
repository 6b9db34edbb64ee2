#!/usr/bin/env python3
"""durable.py [--kanald PATH] [--reps N] [--secs S] [--only kanald|kafka] [ROW]...: acknowledgements after a sync.

Topics with flush.messages=1 on kanald and on Apache Kafka 4.4, in turns in one run: 1, 10, 100 and 1,000 partitions with a
connection each and one request in flight on each, and 100 partitions in one request. Beside them the machine's floor: one
write and one fdatasync of a file whose blocks exist, as large as what 100 partitions share. Records of 1 KiB. Machines
differ and are shared: read ratios. Writes build/bench/durable.json. Asserts nothing. Needs java and mvn for Kafka and the
load tool `rawbench`: $BENCH_TOOLS, by default ../shared/tools/bench beside the checkout.
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


def shared_sync(directory, size, count=300):
    """Milliseconds of one write of `size` bytes and one fdatasync in a file that was written before: p50, p99."""
    path = pathlib.Path(directory) / "floor"
    room, took = 32 << 20, []
    block = bytes((size + 4095) // 4096 * 4096)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        for at in range(0, room, 1 << 20):
            os.pwrite(file, bytes(1 << 20), at)
        os.fsync(file)
        for i in range(count):
            begin = time.perf_counter()
            os.pwrite(file, block, i * len(block) % (room - len(block)) // 4096 * 4096)
            os.fdatasync(file)
            took.append((time.perf_counter() - begin) * 1000)
    finally:
        os.close(file)
        path.unlink()
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def build_tool(tools):
    source, tool = tools / "rawbench.cpp", OUT / "rawbench"
    if not source.exists():
        sys.exit(f"no load tool in {tools}: set BENCH_TOOLS")
    OUT.mkdir(parents=True, exist_ok=True)
    if not tool.exists() or tool.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-O2", "-std=c++20", "-pthread", "-o", tool, source], check=True)
    return tool


def run_row(tool, broker, row, rep, seconds):
    partitions, connections, together = ROWS[row]
    command = [str(tool), "produce", "--broker", broker.address, "--topic", f"durable-{row}-{rep}",
               "--partitions", str(partitions), "--conns", str(connections), "--parts-per-request", str(together),
               "--batch", str(BATCH), "--record", str(BATCH - 72), "--acks", "-1", "--inflight", "1", "--secs", str(seconds),
               "--warmup", str(seconds / 2), "--bytes", "100G", "--pid", str(broker.pid),
               "--topic-config", "flush.messages=1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"  {broker.kind:7s} {row:12s} FAILED: {done.stderr.strip()[:200]}", flush=True)
        return None
    result = json.loads(done.stdout)
    result["acks_s"] = result["requests_s"] * together
    print(f"  {broker.kind:7s} {row:12s} requests/s={result['requests_s']:.0f} acks/s={result['acks_s']:.0f} "
          f"p50_ms={result['ack_p50_us'] / 1000:.2f} p99_ms={result['ack_p99_us'] / 1000:.2f} "
          f"cpu_us={result['broker_cpu_us_per_request']:.0f} other_cores={result.get('other_cores', 0):.2f}", flush=True)
    return result


def summary(results, floors):
    def median(kind, row, key):
        found = [turn[key] for turn in results.get((kind, row), []) if turn]
        return statistics.median(found) if found else None

    def both(row, key, scale=1.0, digits=0):
        texts = []
        for kind in ("kanald", "kafka"):
            value = median(kind, row, key)
            texts.append("-" if value is None else f"{value / scale:.{digits}f}")
        return " / ".join(texts)

    def ratio(row, key, inverse=False):
        ours, theirs = median("kanald", row, key), median("kafka", row, key)
        if not ours or not theirs:
            return ""
        return f"{theirs / ours if inverse else ours / theirs:.1f}x"

    floor = statistics.median(p50 for p50, _ in floors)
    print("\nmedians, kanald / Kafka:")
    show("one shared sync of 100 KiB, p50", f"{floor:.2f} ms")
    targets = {"100p-100c": ", target 8x", "1p-1c": ", target 1.3x"}
    for row in ROWS:
        if median("kanald", row, "acks_s") is None and median("kafka", row, "acks_s") is None:
            continue
        show(f"{row}: acks/s", both(row, "acks_s"), ratio(row, "acks_s") + targets.get(row, ""))
        target = ", target 20x" if row == "100p-1req" else ""
        show(f"{row}: p50, ms", both(row, "ack_p50_us", 1000, 2), ratio(row, "ack_p50_us", True) + target)
        show(f"{row}: p99, ms", both(row, "ack_p99_us", 1000, 2), ratio(row, "ack_p99_us", True))
        ours = median("kanald", row, "ack_p50_us")
        if ours is not None:
            show(f"{row}: p50 in shared syncs", f"{ours / 1000 / floor:.1f}",
                 "target 2" if row in ("100p-100c", "100p-1req") else "")


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
    results, floors = {}, []
    try:
        for broker in brokers:
            broker.start()
        for rep in range(options.reps):
            floors.append(shared_sync(OUT, 100 * (BATCH + 80)))
            print(f"  floor   one shared sync: p50_ms={floors[-1][0]:.2f} p99_ms={floors[-1][1]:.2f}", flush=True)
            for row in options.rows or ROWS:
                for broker in brokers:
                    results.setdefault((broker.kind, row), []).append(run_row(tool, broker, row, rep, options.secs))
    finally:
        for broker in brokers:
            if broker.process is not None and broker.process.poll() is None:
                broker.end()
    summary(results, floors)
    lines = [{"broker": kind, "row": row, "turns": turns} for (kind, row), turns in results.items()]
    (OUT / "durable.json").write_text(json.dumps({"floors_ms": floors, "rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
