#!/usr/bin/env python3
"""figures.py [--reps N] [--quick] [--items A,B]: kanald's figures beside Apache Kafka 4.4's and the machine's floors.

All in one run, interleaved, since machines differ and are shared: read ratios and CPU, not wall clocks. Prints each figure
with its target and writes build/bench/matrix/compare.md. Asserts nothing. Needs java and mvn (Kafka's jars come from Maven
Central by name) and the load tool `rawbench`: $BENCH_TOOLS, by default ../shared/tools/bench beside the checkout.
"""
import argparse
import contextlib
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

import raw_client

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build/bench"
TICKS = os.sysconf("SC_CLK_TCK")
ITEMS = "rtt,ack-100B,p-1K,p-16K,p-256K,p-1M,p-50x100-4K,f-1M,f-64K,tail-1"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def until_answer(address, deadline=120):
    """Waits for the first answer to ApiVersions."""
    end = time.monotonic() + deadline
    while True:
        try:
            with raw_client.connect(address) as connection:
                raw_client.api_versions(connection)
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.001)


class Broker:
    def __init__(self, kind, directory):
        self.kind, self.directory, self.port = kind, pathlib.Path(directory), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        self.directory.mkdir(parents=True, exist_ok=True)

    def start(self):
        """Milliseconds from the start of the process to its first answer."""
        log = open(self.directory / "log.txt", "ab")
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        until_answer(self.address)
        return (time.monotonic() - begin) * 1000

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)

    @property
    def pid(self):
        return self.process.pid


class Kanald(Broker):
    def __init__(self, binary, directory):
        super().__init__("kanald", directory)
        self.binary = binary

    def command(self):
        return [self.binary, "--data-dir", str(self.directory / "data"), "--listen", self.address]


class Kafka(Broker):
    def __init__(self, libs, directory):
        super().__init__("kafka", directory)
        self.libs = libs
        controller = free_port()
        self.properties = self.directory / "server.properties"
        self.properties.write_text(f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{self.address}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={self.directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""")
        storage = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self.properties)]
        subprocess.run(self.java() + storage, check=True, stdout=subprocess.DEVNULL)

    def java(self):
        settings = ROOT / "tests/e2e/kafka_tools/log4j2.properties"
        return ["java", "-Xms1g", "-Xmx2g", "-XX:+UseG1GC", f"-Dlog4j2.configurationFile={settings}", "-cp",
                f"{self.libs}/*"]

    def command(self):
        return self.java() + ["kafka.Kafka", str(self.properties)]


def show(name, value, target=""):
    print(f"{name:58s} {value:>24s}   {target}", flush=True)


def parked_fetches(broker, count, max_wait_ms, seconds):
    """CPU seconds of the broker and answers it gave while `count` fetches are parked on one idle topic."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(raw_client.connect(broker.address)) for _ in range(count)]
        raw_client.create_topics(connections[0], [f"idle-{max_wait_ms}"], 1)
        for connection in connections:
            raw_client.send_fetch(connection, f"idle-{max_wait_ms}", 0, max_wait_ms)
        time.sleep(1)
        begin, cpu, answers = time.monotonic(), cpu_seconds(broker.pid), 0
        if max_wait_ms > seconds * 1000:
            time.sleep(seconds)
        else:
            while time.monotonic() - begin < seconds:
                for connection in connections:
                    raw_client.receive(connection)
                    raw_client.send_fetch(connection, f"idle-{max_wait_ms}", 0, max_wait_ms)
                    answers += 1
        return cpu_seconds(broker.pid) - cpu, time.monotonic() - begin, answers


def idle_figures(kanald, kafka):
    show("RSS 2 s after the start, kanald / Kafka", f"{rss_mib(kanald.pid):.1f} / {rss_mib(kafka.pid):.0f} MiB", "<= 30 MiB")
    cpu, wall, _ = parked_fetches(kanald, 1000, 60_000, 20)
    show("1,000 parked fetches (60 s), CPU", f"{100 * cpu / wall:.3f} % of a core", "<= 0.2 %")
    for broker in (kanald, kafka):
        cpu, _, answers = parked_fetches(broker, 1000, 500, 10)
        show(f"1,000 polls of 500 ms, CPU a poll, {broker.kind}", f"{1e6 * cpu / answers:.1f} us", "<= 1/4 of Kafka's")


def start_figures(binary, reps):
    empty = []
    for rep in range(reps):
        broker = Kanald(binary, OUT / f"start-{rep}")
        empty.append(broker.start())
        broker.end()
        shutil.rmtree(broker.directory)
    show("start to first answer, empty directory (best / median)",
         f"{min(empty):.0f} / {statistics.median(empty):.0f} ms", "<= 50 ms")


def many_partitions(binary):
    broker = Kanald(binary, OUT / "many")
    broker.start()
    before = rss_mib(broker.pid)
    begin = time.monotonic()
    with raw_client.connect(broker.address) as connection:
        for topic in range(10):
            errors = raw_client.create_topics(connection, [f"many-{topic}"], 1000)
            assert not errors, errors
    show("10,000 partitions, creation", f"{time.monotonic() - begin:.2f} s")
    grown = (rss_mib(broker.pid) - before) * 1024 / 10_000
    show("10,000 partitions, RSS each", f"{grown:.2f} KiB", "<= 2 KiB")
    broker.end()
    show("start after a clean stop, 10,000 partitions", f"{broker.start():.0f} ms", "<= 300 ms")
    broker.end(signal.SIGKILL)
    show("start after kill -9, 10,000 partitions", f"{broker.start():.0f} ms")
    broker.end()
    shutil.rmtree(broker.directory)


def fill_page_cache():
    """Fills free memory with clean pages of a sparse file, as on a machine that has run for a while. A VM's host takes
    free pages away, and a log that grows into such pages pays for each at its first touch (1.9 s a GB were seen, three
    times the broker's own cost)."""
    size = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - (1 << 30)
    if size <= 0:
        return
    sparse = OUT / "sparse"
    with open(sparse, "ab") as file:
        file.truncate(sparse.stat().st_size + size)
    with open(sparse, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def matrix(tools, kanald, kafka, reps, items):
    out = OUT / "matrix"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(["make", "-s"], cwd=tools, check=True)
    floors, cold = True, True
    for item in [name for _ in range(reps) for name in items.split(",")]:
        for broker in (kafka, kanald):
            environment = dict(os.environ, REPS="1", ONLY=item)
            if not floors:
                environment["SKIP_FLOOR"] = "1"
            if not cold:
                environment["NO_WARMUP"] = "1"
            floors = cold = False  # the JVM goes first and needs its minute once
            fill_page_cache()
            subprocess.run([sys.executable, str(tools / "baseline.py"), broker.kind, str(broker.port), str(broker.pid),
                            str(out)], check=True, env=environment)
    print((out / "compare.md").read_text())
    print("Targets, broker CPU against Kafka's: produce 1 KiB <= 1/4, 16 KiB <= 1/3, 256 KiB <= 1/1.8; fetch 64 KiB <= 1/2,"
          " 1 MiB no more; tail-1: p50 and p99 below Kafka's.")


def known_items(tools):
    """What the load tool can be asked for; nothing where it is not there."""
    path = tools / "baseline.py"
    if not path.exists():
        return []
    found = importlib.util.spec_from_file_location("baseline", path)
    baseline = importlib.util.module_from_spec(found)
    found.loader.exec_module(baseline)
    return ["idle", *baseline.ITEMS]


def arguments(tools):
    known = known_items(tools)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="no matrix: starts, idling and many partitions only")
    parser.add_argument("--items", default=ITEMS, help=f"of the matrix, by comma (default: {ITEMS}); there are "
                        + (", ".join(known) or "those of the load tool, which is not found"))
    options = parser.parse_args()
    if options.quick:
        return options
    if not known:
        parser.error(f"no load tool in {tools}: set BENCH_TOOLS, or use --quick")
    if unknown := [item for item in options.items.split(",") if item not in known]:
        parser.error(f"no such item: {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    return options


def main():
    tools = pathlib.Path(os.environ.get("BENCH_TOOLS", ROOT.parent / "shared/tools/bench"))
    options = arguments(tools)
    subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
    shutil.rmtree(OUT, ignore_errors=True)
    start_figures(options.kanald, 5)
    many_partitions(options.kanald)
    kafka, kanald = Kafka(ROOT / "build/kafka-tools/libs", OUT / "kafka"), Kanald(options.kanald, OUT / "kanald")
    try:
        show("Kafka, start to first answer (formatted)", f"{kafka.start():.0f} ms")
        kanald.start()
        time.sleep(2)
        idle_figures(kanald, kafka)
        if not options.quick:
            matrix(tools, kanald, kafka, options.reps, options.items)
    finally:
        for broker in (kafka, kanald):
            if broker.process is not None and broker.process.poll() is None:
                broker.end()


if __name__ == "__main__":
    main()
